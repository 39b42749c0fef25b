import { join } from '../../../gateway/lease/account.ts';
import { type CreditState, topUpCredits } from '../../../gateway/lease/centre-credit.ts';
import { rateStateLifeMs, type RateState, topUpRate } from '../../../gateway/lease/centre-rate.ts';
import {
  type Collected,
  createLeases,
  type Decision,
  GATHER_MS,
  type Leases,
} from '../../../gateway/lease/leases.ts';
import type {
  Answered,
  CreditAsk,
  CreditGrant,
  NodeId,
  RateAsk,
  RateGrant,
  Speaker,
} from '../../../gateway/lease/messages.ts';
import { settleCredits, settleRates } from '../../../gateway/lease/settle.ts';
import type { Charge } from '../../../gateway/limits/charge.ts';
import type { Spending } from '../../../gateway/limits/journal.ts';
import type { Price } from '../../../gateway/limits/price.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../../shared/keys/api-key.ts';
import { createAgenda } from './agenda.ts';

/** The centre's transitions, so that a test can plant a fault in them. */
export type Centre = Readonly<{
  topUpRate: typeof topUpRate;
  topUpCredits: typeof topUpCredits;
  rateStateLifeMs: typeof rateStateLifeMs;
}>;
export const CENTRE: Centre = { topUpRate, topUpCredits, rateStateLifeMs };

/** What the network does with one message: `undefined` loses it. Both in milliseconds. */
export type Fate = Readonly<{ thereMs: number | undefined; backMs: number | undefined; again?: number }>;

export type WorldOptions = Readonly<{
  plan: Plan;
  nodes: number;
  centre?: Centre;
  fate?: (from: Node) => Fate;
  /** Credits ever given, when they are not the plan's. */
  total?: number;
}>;

export type Outcome = Charge['kind'];

const TICK_MS = 20;
const DEADLINE_MS = 100;
const RATE_WAIT_MS = 50;
const CREDITS_WAIT_MS = 100;

type Counters = { charged: number; refunded: number };

/** One gateway process on the virtual clock. `disk` survives a crash; `memory` does not. */
type Node = {
  id: NodeId;
  fence: number;
  seq: number;
  disk: Counters;
  memory: Spending;
  leases: Leases;
  alive: boolean;
  born: number;
  /** Turns of its pump so far. */
  turn: number;
};

const KEY_ID = keyIdOf(hashOf(makeApiKey((bytes) => new Uint8Array(bytes))));

/** One account, several processes and their centre, on one virtual clock, without a promise. */
export function createWorld({ plan: firstPlan, nodes: count, centre = CENTRE, fate, total }: WorldOptions) {
  const agenda = createAgenda();
  let nowMs = 1_000;
  let centreSkewMs = 0;
  let plan = firstPlan;
  let revision = 1;
  let rate: RateState | undefined;
  let credit: CreditState | undefined;
  let learnUntilMs = 0;
  let born = 0;
  let storeOut = false;
  const counts = { messages: 0, lost: 0 };
  const onExecuted: (() => void)[] = [];
  const nodes = Array.from({ length: count }, (_, i) => makeNode(`n${i}`, 1, { charged: 0, refunded: 0 }));
  for (const [i, node] of nodes.entries())
    agenda.at(nowMs + (i * TICK_MS) / count, () => tick(node, node.born));

  function makeNode(name: string, fence: number, disk: Counters): Node {
    const memory = { ...disk };
    const share = 1 / count;
    const leases = createLeases({ spendingOf: () => memory, revision: () => revision, share });
    // The brand is the identity file's to give; here only names that differ matter.
    return { id: name as NodeId, fence, seq: 0, disk, memory, leases, alive: true, born, turn: 3 * born++ };
  }

  function tick(node: Node, since: number): void {
    if (!node.alive || node.born !== since) return;
    const gathers = ++node.turn % (GATHER_MS / TICK_MS) === 0;
    send(node, !gathers);
    if (gathers && !storeOut) dispatch(node, node.leases.collectWatched(nowMs, 60, 256));
    node.leases.forgetIdle(nowMs, 100);
    agenda.at(nowMs + TICK_MS, () => tick(node, since));
  }

  function send(node: Node, hurried: boolean): void {
    if (storeOut) return;
    dispatch(node, node.leases.collect(nowMs, 60, 256, hurried));
  }

  function dispatch(node: Node, due: Collected): void {
    for (const one of due.rates)
      post(
        node,
        (by) => askRate(by, one.ask),
        (a) => settleRates([one], [a], nowMs),
      );
    for (const one of due.credits) {
      node.disk = { charged: one.ask.charged, refunded: one.ask.refunded };
      post(
        node,
        (by) => askCredits(by, one.ask),
        (a) => settleCredits([one], [a], nowMs),
      );
    }
  }

  /** Sends one message on its way, which the network may lose, delay or deliver twice. */
  function post<Grant>(
    node: Node,
    execute: (by: Speaker) => Grant | undefined,
    settle: (answer: Answered<Grant>) => void,
  ): void {
    const { thereMs, backMs, again } = fate?.(node) ?? { thereMs: 0.5, backMs: 0.5 };
    const by = { node: node.id, fence: node.fence, seq: ++node.seq };
    const since = node.born;
    let settled = false;
    const finish = (answer: Answered<Grant>) => {
      if (settled || node.born !== since || !node.alive) return;
      settled = true;
      settle(answer);
    };
    counts.messages++;
    agenda.at(nowMs + DEADLINE_MS, () => finish({ kind: 'failed' }));
    if (thereMs === undefined) return void counts.lost++;
    agenda.at(nowMs + thereMs, () => {
      const grant = execute(by);
      for (const told of onExecuted) told();
      if (backMs === undefined || grant === undefined) return;
      agenda.at(nowMs + backMs, () => finish({ kind: 'granted', grant }));
    });
    if (again !== undefined) {
      agenda.at(nowMs + thereMs + again, () => {
        execute(by);
        for (const told of onExecuted) told();
      });
    }
  }

  const centreMs = () => Math.floor(nowMs + centreSkewMs) + 1_700_000_000_000;

  function askRate(by: Speaker, ask: RateAsk): RateGrant {
    const done = centre.topUpRate(rate, by, ask, centreMs());
    rate = done.state;
    return done.grant;
  }

  function askCredits(by: Speaker, ask: CreditAsk): CreditGrant {
    const done = centre.topUpCredits(credit, by, ask, centreMs(), nowMs < learnUntilMs);
    credit = done.state;
    return done.grant;
  }

  /** Lets a request come to a node; `answer` is called once, at once or later, unless the node dies. */
  function request(
    node: Node,
    price: Price,
    answer: (charge: Charge, tookMs: number, from: 'shared' | 'local') => void,
  ): void {
    if (!node.alive) return;
    const [sinceMs, since] = [nowMs, node.born];
    const caller = { keyId: KEY_ID, accountId: 1, plan: 'p', creditsGranted: total };
    const account = node.leases.accountOf(caller, plan, nowMs);
    node.leases.offer(account, caller, price, nowMs);
    const look = () => {
      if (!node.alive || node.born !== since) return;
      const rateMay = nowMs < sinceMs + RATE_WAIT_MS;
      const creditsMay = nowMs < sinceMs + CREDITS_WAIT_MS;
      const alone = account.rate.local?.spent ?? 0;
      const decision = node.leases.decide(account, price, nowMs, {
        rate: rateMay,
        credits: creditsMay,
        storeOut,
      });
      if (decision.kind === 'ask') return wait(decision);
      // Durable before it is answered, as the journal promises.
      if (decision.kind === 'taken') node.disk = { ...node.memory };
      const from = (account.rate.local?.spent ?? 0) > alone ? 'local' : 'shared';
      answer(decision.charge, nowMs - sinceMs, from);
      if (decision.kind === 'taken' && node.leases.isPressed(account, nowMs)) send(node, true);
    };
    const wait = (asked: Extract<Decision, { kind: 'ask' }>) => {
      let woken = false;
      const wake = () => {
        if (woken) return;
        woken = true;
        leave();
        look();
      };
      const leave = join(account, price, asked, wake);
      agenda.at(sinceMs + (asked.credits ? CREDITS_WAIT_MS : RATE_WAIT_MS), wake);
      send(node, true);
    };
    look();
  }

  /** A node tells what it spent when the centre may have lost it, and when it starts. */
  function tellAgain(node: Node): void {
    if (node.leases.tellAgain(1)) return;
    const ask = { accountId: 1, revision: -1, total: 0, ...node.disk, held: 0, wanted: 0, needed: 0 };
    const since = node.born;
    post(
      node,
      (by) => askCredits(by, ask),
      ({ kind }) => {
        if (kind === 'failed')
          agenda.at(nowMs + 200, () => node.born === since && node.alive && tellAgain(node));
      },
    );
  }

  function crash(node: Node): void {
    node.alive = false;
  }

  /** Starts a dead node again, on its disk or as another one on an empty disk. */
  function restart(i: number, hasDisk: boolean): void {
    const old = nodes[i];
    if (old === undefined || old.alive) return;
    const fresh = { charged: 0, refunded: 0 };
    const node = hasDisk ? makeNode(old.id, old.fence + 1, old.disk) : makeNode(`${old.id}'`, 1, fresh);
    nodes[i] = node;
    agenda.at(nowMs, () => tick(node, node.born));
    if (plan.credits !== undefined) tellAgain(node);
  }

  return {
    nodes,
    request,
    crash,
    restart,
    counts,
    onExecuted,
    at: agenda.at,
    now: () => nowMs,
    run(ms: number) {
      agenda.runUntil(nowMs + ms, (at) => (nowMs = at));
    },
    /** The node gives back what was taken, as when no backend could answer. */
    refund(node: Node, price: Price) {
      const caller = { keyId: KEY_ID, accountId: 1, plan: 'p', creditsGranted: total };
      node.leases.giveBack(node.leases.accountOf(caller, plan, nowMs), price, nowMs);
      node.disk = { ...node.memory };
    },
    /** Calls that the node let in and nobody granted. */
    owedBy(node: Node): number {
      const caller = { keyId: KEY_ID, accountId: 1, plan: 'p', creditsGranted: total };
      const { spent, granted } = node.leases.accountOf(caller, plan, nowMs).rate;
      return Math.max(0, spent - granted);
    },
    /** Credits that the node may charge without asking. */
    allowanceOf(node: Node): number {
      const caller = { keyId: KEY_ID, accountId: 1, plan: 'p', creditsGranted: total };
      return node.leases.accountOf(caller, plan, nowMs).credit?.allowance ?? 0;
    },
    setPlan(changed: Plan) {
      plan = changed;
      revision++;
    },
    plan: () => plan,
    stepCentreClock: (ms: number) => void (centreSkewMs += ms),
    setStoreOut: (is: boolean) => void (storeOut = is),
    centreState: () => ({ rate, credit }),
    /** The centre goes back to an earlier state, or to none, and listens for a while before it grants credits. */
    restoreCentre(
      to: Readonly<{ rate: RateState | undefined; credit: CreditState | undefined }>,
      learnMs: number,
    ) {
      ({ rate, credit } = to);
      learnUntilMs = nowMs + learnMs;
      for (const node of nodes) if (node.alive) tellAgain(node);
    },
  };
}

export type World = ReturnType<typeof createWorld>;
export type { Collected, Node };
