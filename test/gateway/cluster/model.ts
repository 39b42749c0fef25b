import type { CreditHolding, CreditState } from '../../../gateway/cluster/authority-credits.ts';
import { RATE_FORGET_MS } from '../../../gateway/cluster/authority-rate.ts';
import { decode } from '../../../gateway/cluster/authority.ts';
import type { Price } from '../../../gateway/limits/charge.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { seeded } from '../../fakes/seeded.ts';
import { type Authority, createWorld, type Fate, type Node } from './world.ts';

/** One thing that happens. Nodes are meant modulo their number. */
export type Op =
  | { readonly kind: 'requests'; node: number; count: number; calls: number; credits: number }
  | { readonly kind: 'wait'; ms: number }
  | { readonly kind: 'refund'; node: number }
  | { readonly kind: 'crash'; node: number }
  | { readonly kind: 'restart'; node: number; hasDisk: boolean }
  | { readonly kind: 'network'; loss: number; twice: number; delayMs: number }
  | { readonly kind: 'clock'; ms: number }
  | { readonly kind: 'plan'; rps: number; burst: number }
  /** The store goes back by so many messages, or loses everything. */
  | { readonly kind: 'failover'; messages: number };

export type ModelOptions = Readonly<{ authority: Authority; plan: Plan; nodes: number; seed: number }>;

/** Longer than any learning and any lease: after it the network is as it was. */
const LEARN_MS = 2_000;
const QUIET_MS = 14_000;
const WAIT_MAX_MS = 100;
const SETTLED_MS = 500;

/** The largest batch; a process that dies takes what it owes for one with it. */
export const CALLS_MAX = 120;

export class Violation extends Error {}

function hold(is: boolean, invariant: string): void {
  if (!is) throw new Violation(invariant);
}

/** Runs a schedule against a world and holds the invariants I1 to I8 after every step. */
export function runModel(
  ops: readonly Op[],
  { authority, plan: firstPlan, nodes, seed }: ModelOptions,
): void {
  const random = seeded(seed);
  let plan = firstPlan;
  const total = plan.credits ?? 0;
  let network = { loss: 0, twice: 0, delayMs: 2 };
  let wayMs = 2 * network.delayMs;
  let calmUntilMs = 0;
  const snapshots: (string | undefined)[] = [];
  const debtMax = plan.credits === undefined ? Math.max(1, Math.ceil(0.02 * plan.rps)) : 0;
  const meter = createMeter();
  const gone: Node[] = [];
  let creditSlack = 0;
  let wentBack = false;
  let largeMs = Number.NEGATIVE_INFINITY;

  const watched: Authority = (before, by, message, moment) => {
    const done = authority(before, by, message, moment);
    const again = authority(done.blob, by, message, moment);
    hold(again.blob === done.blob, 'I4: a message that comes twice changes something');
    hold(again.reply.rate?.granted === done.reply.rate?.granted, 'I4: the same message is granted twice');
    const [was, is] = [decode(before), decode(done.blob)];
    if (message.rate !== undefined && is.rate !== undefined) {
      const { micro, burst, perMs, nodes: all, clockMs } = is.rate;
      const isLeap = clockMs - (was.rate?.clockMs ?? 0) >= RATE_FORGET_MS;
      for (const { node, fence, spent } of isLeap ? [] : (was.rate?.nodes ?? [])) {
        const after = all.find((holding) => holding.node === node);
        if (after?.fence === fence) hold(after.spent >= spent, 'I3: what a node spent decreases');
      }
      const { lifeMs = Infinity } = done;
      hold(lifeMs > (burst * 1e6 - micro) / perMs, 'I6: a bucket is dropped before it is full');
    }
    if (message.credits !== undefined && is.credits !== undefined) {
      for (const holding of was.credits?.nodes ?? [])
        expectGrown(holding, holdingIn(is.credits, holding.node));
      const held = was.credits === undefined ? 0 : heldIn(was.credits);
      // A store that went back knows leases that were returned since; then only the journals can tell.
      if (!wentBack) hold(heldIn(is.credits) <= Math.max(held, total), 'I2: more is granted than there is');
    }
    return done;
  };

  const fate = (): Fate => {
    const { loss, twice, delayMs } = world.now() < calmUntilMs ? { loss: 0, twice: 0, delayMs: 2 } : network;
    return {
      thereMs: random() < loss ? undefined : random() * delayMs,
      backMs: random() < loss ? undefined : random() * delayMs,
      ...(random() < twice ? { again: random() * 3_000 } : {}),
    };
  };
  const world = createWorld({ plan, nodes, authority: watched, fate, total });
  world.onExecuted.push(() => void snapshots.push(world.blob()));

  function createMeter() {
    let [level, atMs, extra] = [0, 0, 0];
    let [rps, burst] = [plan.rps, plan.burst];
    // A token given to a waiting request is taken a message's way later; until then the bucket refills without it.
    const room = () => burst + nodes * debtMax + (rps * wayMs) / 1_000;
    level = room();
    return {
      change(to: Plan) {
        [extra, rps, burst] = [extra + 2 * Math.max(burst, to.burst), Math.max(rps, to.rps), to.burst];
        world.at(world.now() + 1_200, () => (rps = plan.rps));
      },
      allow: (tokens: number) => void (extra += tokens),
      take(calls: number) {
        const nowMs = world.now();
        if (atMs > 0) level = Math.min(room(), level + ((nowMs - atMs) * rps) / 1_000);
        atMs = nowMs;
        // A batch above the burst needs a full bucket, and is paid off afterwards.
        const need = Math.min(calls, burst);
        if (level < need) [extra, level] = [extra + level - need, need];
        level -= calls;
        hold(extra > -1e-6, 'I1: more is admitted than the envelope allows');
      },
    };
  }

  const nodeAt = (i: number) => world.node(i % nodes);

  function request(node: Node, price: Price): void {
    let answers = 0;
    const sinceMs = world.now();
    world.request(node, price, (charge, tookMs, from) => {
      answers++;
      hold(answers === 1, 'I7: a request is answered twice');
      // A timer that is set anew within the last millisecond ends after it.
      hold(tookMs < WAIT_MAX_MS + 1, 'I8: a request waits longer than its time');
      // What a process lets in alone has bounds of its own; it is reported as a debt.
      if (charge.kind === 'charged' && from !== 'local') meter.take(price.calls);
    });
    world.at(sinceMs + WAIT_MAX_MS + 1, () => {
      hold(answers === 1 || !node.alive, 'I7: a request is not answered');
    });
  }

  /** Credits spent by all processes that ever lived. */
  const spentBy = ({ memory: { charged, refunded } }: Node) => charged - refunded;
  const spent = () => [...gone, ...world.nodes].reduce((sum, node) => sum + spentBy(node), 0);

  /** What a process that is dead spent of grants that the store has lost: it cannot report. */
  function unknown(node: Node, credit: CreditState | undefined): number {
    const holding = holdingIn(credit, node.id);
    return Math.max(0, spentBy(node) - (holding === undefined ? 0 : holding.granted - holding.returned));
  }

  function conserve(): void {
    let held = 0;
    for (const node of world.nodes) if (node.alive) held += Math.max(0, world.allowanceOf(node));
    hold(spent() + held <= total + creditSlack, 'I2: credits that are spent and held are above the total');
  }

  function step(op: Op): void {
    switch (op.kind) {
      case 'requests': {
        const node = nodeAt(op.node);
        // What a batch takes above the burst is known to the authority a message's way later; the meter knows it at once.
        const isExact = network.loss === 0 && network.delayMs <= 2 && debtMax === 0;
        if (isExact && op.calls > plan.burst) {
          meter.allow(op.count);
          largeMs = world.now();
        }
        const calls = isExact ? op.calls : Math.min(op.calls, plan.burst);
        const price = { calls, credits: total > 0 ? op.credits : 0 };
        for (let i = 0; i < op.count; i++) request(node, price);
        return;
      }
      case 'wait':
        return world.run(op.ms);
      case 'refund': {
        const node = nodeAt(op.node);
        const credits = node.alive ? Math.min(7, spentBy(node)) : 0;
        return credits > 0 ? world.refund(node, { calls: 0, credits }) : undefined;
      }
      case 'crash': {
        const node = nodeAt(op.node);
        if (!node.alive) return;
        meter.allow(world.owedBy(node));
        if (world.now() < calmUntilMs) creditSlack += unknown(node, world.state().credits);
        return world.crash(node);
      }
      case 'restart': {
        const node = nodeAt(op.node);
        if (node.alive) return;
        if (!op.hasDisk) gone.push(node);
        return world.restart(op.node % nodes, op.hasDisk);
      }
      case 'network':
        network = op;
        wayMs = WAIT_MAX_MS;
        // What a large batch owes may now take its time to be reported.
        if (world.now() - largeMs < SETTLED_MS) meter.allow(CALLS_MAX);
        return;
      case 'clock':
        if (op.ms > 0) meter.allow(2 * plan.burst + CALLS_MAX);
        return world.stepStoreClock(op.ms);
      case 'plan':
        if (plan.credits !== undefined) return;
        plan = { ...plan, rps: op.rps, burst: op.burst };
        meter.change(plan);
        return world.setPlan(plan);
      case 'failover': {
        const to = snapshots[snapshots.length - 1 - op.messages];
        const { credits } = decode(to);
        for (const node of [...world.nodes.filter(({ alive }) => !alive), ...gone])
          creditSlack += unknown(node, credits);
        meter.allow(2 * plan.burst + CALLS_MAX);
        wentBack = true;
        calmUntilMs = world.now() + LEARN_MS + 1_000;
        return world.restore(to, LEARN_MS);
      }
    }
  }

  for (const op of ops) {
    step(op);
    conserve();
  }

  network = { loss: 0, twice: 0, delayMs: 2 };
  for (const [i, node] of world.nodes.entries()) if (!node.alive) world.restart(i, true);
  // A process that was restarted reports an account when it has a request for it.
  for (let turn = 0; turn < 2; turn++) {
    for (const node of world.nodes) request(node, { calls: 1, credits: total > 0 ? 1 : 0 });
    // Nothing refills at the first message after a clock went back; hence the second.
    world.run(QUIET_MS);
  }
  conserve();
  let whole = 'nothing';
  world.request(world.node(0), { calls: plan.burst, credits: 0 }, ({ kind }) => (whole = kind));
  world.run(WAIT_MAX_MS);
  hold(whole === 'charged', 'at rest the burst is not whole');
  const { credits: credit } = world.state();
  if (credit === undefined) return;
  // Of a disk that was lost.
  const takenBy = ({ granted, returned }: CreditHolding) => granted - returned;
  const lost = gone.reduce((sum, node) => {
    const holding = holdingIn(credit, node.id);
    return sum + (holding === undefined ? 0 : takenBy(holding)) - spentBy(node);
  }, 0);
  hold(heldIn(credit) === spent() + lost, 'I5: at rest the ledger is not the sum of the journals');
}

function holdingIn(state: CreditState | undefined, node: Node['id']): CreditHolding | undefined {
  return state?.nodes.find((holding) => holding.node === node);
}

function expectGrown(was: CreditHolding, is: CreditHolding | undefined): void {
  const counters = ['granted', 'returned', 'charged', 'refunded'] as const;
  const grown = counters.every((counter) => (is?.[counter] ?? -1) >= was[counter]);
  hold(grown, 'I3: granted, returned, charged or refunded decreases, or a node is forgotten');
}

function heldIn({ nodes }: CreditState): number {
  return nodes.reduce((sum, { granted, returned }) => sum + granted - returned, 0);
}
