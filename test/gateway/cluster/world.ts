import { type Account, COMBINE_MS, isOverdrawn } from '../../../gateway/cluster/lease-reports.ts';
import { createLeases, CREDITS_WAIT_MS, type Leases, RATE_WAIT_MS } from '../../../gateway/cluster/leases.ts';
import { joinWaiters } from '../../../gateway/cluster/shared-charging.ts';
import { type Answer, answer, decode, SCAN_FORGET_MS } from '../../../gateway/cluster/authority.ts';
import type { Charge, Price } from '../../../gateway/limits/charge.ts';
import type { OtherSpending, Spending } from '../../../gateway/limits/journal.ts';
import type { Message, Reply } from '../../../gateway/cluster/messages.ts';
import { createScanLeases, type ScanLeases } from '../../../gateway/cluster/scan-leases.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { callerOf } from '../usage/started.ts';

/** A test can plant a fault in it. */
export type Authority = typeof answer;

/** What the network does with one message: `undefined` loses it. Both in milliseconds. */
export type Fate = Readonly<{ thereMs: number | undefined; backMs: number | undefined; again?: number }>;

export type WorldOptions = Readonly<{
  plan: Plan;
  nodes: number;
  authority?: Authority;
  fate?: (from: Node) => Fate;
  /** Credits ever given, when they are not the plan's. */
  total?: number;
  /** Each node is a host of its own, and sees no other's journal, or as the host of deploys what others reported. */
  areHosts?: boolean | 'told';
}>;

const [TICK_MS, AHEAD_MS, DEADLINE_MS] = [20, 60, 100];
const ACCOUNT = 1;
const NOTHING: Spending = { charged: 0, refunded: 0 };

/** One gateway process on the virtual clock. `disk` survives a crash; `memory` does not. */
export type Node = {
  readonly id: string;
  readonly fence: number;
  seq: number;
  disk: Spending;
  readonly memory: Spending;
  readonly accounts: Leases;
  readonly scans: ScanLeases;
  alive: boolean;
  /** Turns so far, and scans that wait, run and have ended. */
  turn: number;
  waiting: number;
  running: number;
  done: number;
};

/** A journal of one account in which everything is durable at once. */
export const journalOf = (
  spending: Spending,
  spentByOthers = (): ReadonlyMap<string, OtherSpending> => new Map(),
) => ({
  spendingOf: () => spending,
  spentByOthers,
  isDurable: () => true,
  isFailing: () => false,
  flush: () => undefined,
});

/** Things to happen at instants, in their order. Things of one instant happen in the order of asking. */
function createAgenda() {
  /** The latest first, so that the next one is the last. */
  const entries: { atMs: number; act(): void }[] = [];

  function at(atMs: number, act: () => void): void {
    let [low, high] = [0, entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((entries[middle]?.atMs ?? 0) > atMs) low = middle + 1;
      else high = middle;
    }
    entries.splice(low, 0, { atMs, act });
  }

  return {
    at,
    /** Lets happen what is due up to `untilMs`; `setNow` is told of every instant. */
    runUntil(untilMs: number, setNow: (ms: number) => void) {
      for (let next = entries.at(-1); next !== undefined && next.atMs <= untilMs; next = entries.at(-1)) {
        entries.pop();
        setNow(next.atMs);
        next.act();
      }
      setNow(untilMs);
    },
  };
}

/** The function, which does nothing from its second call on. */
function once<Args extends unknown[]>(act: (...args: Args) => unknown): (...args: Args) => void {
  let isDone = false;
  return (...args) => {
    if (isDone) return;
    isDone = true;
    act(...args);
  };
}

/** One account, several processes and their store, on one virtual clock. */
export function createWorld(options: WorldOptions) {
  const { nodes: count, authority = answer, fate, areHosts = false } = options;
  const agenda = createAgenda();
  const caller = callerOf(ACCOUNT, options.total);
  let { plan } = options;
  let nowMs = 1_000.390625;
  let storeSkewMs = 0;
  let revision = 1;
  let blob: string | undefined;
  let lostMs = Number.NEGATIVE_INFINITY;
  let learnMs = 0;
  let born = 0;
  let storeOut = false;
  const counts = { messages: 0, mostScans: 0 };
  const onExecuted: (() => void)[] = [];
  /** Messages that were executed, to be sent again, and when. */
  const executed: { atMs: number; again(): void }[] = [];
  const nodes: Node[] = Array.from({ length: count }, (_, i) => makeNode(`n${i}`, 1, NOTHING));
  for (const [i, node] of nodes.entries()) agenda.at(nowMs + (i * TICK_MS) / count, () => tick(node));

  function makeNode(name: string, fence: number, disk: Spending): Node {
    const memory = { ...disk };
    const others = () => (areHosts === true ? [] : nodes.filter(({ id }) => id !== name));
    const isOnHost = areHosts === false;
    const journal = journalOf(
      memory,
      () => new Map(others().map(({ id, disk: spent }) => [id, { ...spent, isOnHost }])),
    );
    const accounts = createLeases({ journal, revision: () => revision, share: 1 / count });
    const scans = createScanLeases({
      monotonic: () => nowMs,
      revision: () => revision,
      isOut: () => false,
      flushSoon: () => agenda.at(nowMs, () => flush(node, false)),
    });
    const progress = { alive: true, turn: 3 * born++, waiting: 0, running: 0, done: 0 };
    const node: Node = { id: name, fence, seq: 0, disk, memory, accounts, scans, ...progress };
    return node;
  }

  function tick(node: Node): void {
    if (!node.alive) return;
    flush(node, ++node.turn % (COMBINE_MS / TICK_MS) === 0);
    node.accounts.forgetIdle(nowMs, 100);
    agenda.at(nowMs + TICK_MS, () => tick(node));
  }

  function flush(node: Node, all: boolean): void {
    if (!node.alive) return;
    if (!storeOut) post(node, node.accounts.collect(nowMs, AHEAD_MS, 256, all));
    post(node, node.scans.collect(nowMs, 256));
  }

  /** Sends messages on their way, which the network may lose, delay or deliver twice. */
  function post(node: Node, messages: readonly Message[]): void {
    for (const message of messages) {
      const { credits } = message;
      // Durable before it is sent, as the journal promises.
      if (credits !== undefined) node.disk = { charged: credits.charged, refunded: credits.refunded };
      carry(node, message, (reply) => {
        node.accounts.hear(message, reply, nowMs);
        node.scans.hear(message, reply, nowMs);
      });
    }
  }

  function carry(node: Node, message: Message, settle: (reply: Reply | undefined) => void): void {
    const { thereMs, backMs, again } = fate?.(node) ?? { thereMs: 0.5, backMs: 0.5 };
    const by = { node: node.id, fence: node.fence, seq: ++node.seq };
    const finish = once((reply: Reply | undefined) => node.alive && settle(reply));
    const execute = (): Reply => {
      const done: Answer = authority(blob, by, message, {
        nowMs: Math.floor(nowMs + storeSkewMs) + 1_700_000_000_000,
        sinceLossMs: nowMs - lostMs < learnMs ? 0 : Infinity,
        answeredSeq: undefined,
      });
      blob = done.blob;
      for (const listen of onExecuted) listen();
      return done.reply;
    };
    counts.messages++;
    agenda.at(nowMs + DEADLINE_MS, () => finish(undefined));
    if (thereMs === undefined || storeOut) return;
    agenda.at(nowMs + thereMs, () => {
      const reply = execute();
      executed.push({ atMs: nowMs, again: execute });
      if (backMs !== undefined) agenda.at(nowMs + backMs, () => finish(reply));
    });
    if (again !== undefined) agenda.at(nowMs + thereMs + again, execute);
  }

  function accountOf(node: Node, offered?: Price): Account {
    const account = node.accounts.accountOf(caller, plan, nowMs, offered);
    if (account === undefined) throw new Error('the journal of a world can be read');
    return account;
  }

  /** Lets a request come to a node; `finish` is called once, at once or later, unless the node dies. */
  function request(
    node: Node,
    price: Price,
    finish: (charge: Charge, tookMs: number, from: 'shared' | 'local') => void,
  ): void {
    if (!node.alive) return;
    const sinceMs = nowMs;
    const account = accountOf(node, price);
    const look = () => {
      if (!node.alive) return;
      const tookMs = nowMs - sinceMs;
      const alone = account.rate.spentAlone;
      const decision = node.accounts.decide(account, price, nowMs, tookMs, storeOut);
      if (typeof decision === 'string') return wait(decision);
      // Durable before it is answered, as the journal promises.
      if (decision.kind === 'charged') node.disk = { ...node.memory };
      finish(decision, tookMs, account.rate.spentAlone > alone ? 'local' : 'shared');
      if (decision.kind === 'charged' && isOverdrawn(account, nowMs)) flush(node, false);
    };
    const wait = (asks: 'ask-rate' | 'ask-credits') => {
      const wake = once(() => {
        leave();
        look();
      });
      const leave = joinWaiters(account, price, asks, wake);
      const waitMs = asks === 'ask-credits' ? CREDITS_WAIT_MS : RATE_WAIT_MS;
      agenda.at(Math.max(nowMs + 1, sinceMs + waitMs), wake);
      flush(node, false);
    };
    look();
  }

  /** A node reports what it spent when the store may have lost it, and when it starts. */
  function resync(node: Node): void {
    if (node.accounts.resync(ACCOUNT)) return;
    const credits = { total: 0, ...node.disk, held: 0, wanted: 0, needed: 0 };
    carry(node, { accountId: ACCOUNT, revision: -1, credits }, (reply) => {
      if (reply === undefined) agenda.at(nowMs + 200, () => node.alive && resync(node));
    });
  }

  /** A scan comes to a node; once it runs it takes so long. */
  async function scan(node: Node, takesMs: () => number): Promise<void> {
    if (!node.alive || !node.scans.hasRoom(ACCOUNT, plan.scans)) return;
    node.waiting++;
    const giveBack = await node.scans.take(ACCOUNT, plan.scans, new AbortController().signal);
    node.waiting--;
    if (!node.alive) return;
    node.running++;
    counts.mostScans = Math.max(counts.mostScans, running());
    agenda.at(nowMs + takesMs(), () => {
      if (!node.alive) return;
      node.running--;
      node.done++;
      giveBack();
    });
  }

  const running = () => nodes.reduce((sum, node) => sum + (node.alive ? node.running : 0), 0);

  return {
    nodes,
    /** The node that is now in a place. */
    node(i: number): Node {
      const node = nodes[i];
      if (node === undefined) throw new Error(`a world of ${count} nodes`);
      return node;
    },
    request,
    scan,
    running,
    counts,
    onExecuted,
    at: agenda.at,
    now: () => nowMs,
    blob: () => blob,
    state: () => decode(blob),
    run(ms: number) {
      agenda.runUntil(nowMs + ms, (at) => (nowMs = at));
    },
    /** Lets time pass, and what waits for a promise have its turn at every instant. */
    async runTurns(ms: number) {
      const untilMs = nowMs + ms;
      while (nowMs < untilMs) {
        agenda.runUntil(Math.min(untilMs, nowMs + 1), (at) => (nowMs = at));
        for (let turn = 0; turn < 3; turn++) await Promise.resolve();
      }
    },
    crash: (node: Node) => void (node.alive = false),
    /** Starts a dead node again, on its disk or as another one on an empty disk. */
    restart(i: number, hasDisk: boolean) {
      const old = nodes[i];
      if (old === undefined || old.alive) return;
      const node = hasDisk ? makeNode(old.id, old.fence + 1, old.disk) : makeNode(`${old.id}'`, 1, NOTHING);
      nodes[i] = node;
      agenda.at(nowMs, () => tick(node));
      if (plan.credits !== undefined) resync(node);
    },
    /** The node gives back what was taken, as when no backend could answer. */
    refund(node: Node, price: Price) {
      node.accounts.giveBack(accountOf(node), price, nowMs);
      node.disk = { ...node.memory };
    },
    /** Calls that the node let in and that were not granted. */
    owedBy(node: Node): number {
      const { spent, granted } = accountOf(node).rate;
      return Math.max(0, spent - granted);
    },
    /** What an answer of the node says is left. */
    stated(node: Node, charge: Charge): number | undefined {
      if (charge.kind === 'out-of-credits') return charge.creditsLeft;
      return charge.kind === 'charged' ? node.accounts.creditsLeft(ACCOUNT) : undefined;
    },
    /** Credits that the node may charge without asking. */
    allowanceOf: (node: Node) => accountOf(node).credit?.allowance ?? 0,
    setPlan(changed: Plan) {
      plan = changed;
      revision++;
    },
    stepStoreClock: (ms: number) => void (storeSkewMs += ms),
    setStoreOut: (is: boolean) => void (storeOut = is),
    /** The store goes back to an earlier blob, or to none, and the authority learns for a while. */
    restore(to: string | undefined, learningMs: number) {
      blob = to;
      executed.length = 0;
      lostMs = nowMs;
      learnMs = learningMs;
      if (plan.credits !== undefined) for (const node of nodes) if (node.alive) resync(node);
    },
    /** Executes a message again, `back` before the last one, unless its node may have been forgotten since. */
    executeAgain(back: number) {
      const one = executed.at(-1 - back);
      if (one !== undefined && nowMs - one.atMs < SCAN_FORGET_MS) one.again();
    },
    /** Keeps so many scans of a node under way or waiting until `untilMs`. */
    keepBusy(i: number, atOnce: number, takesMs: () => number, untilMs = Number.POSITIVE_INFINITY) {
      const again = () => {
        const node = nodes[i];
        if (nowMs >= untilMs || node === undefined) return;
        while (node.alive && node.running + node.waiting < atOnce && node.scans.hasRoom(ACCOUNT, plan.scans))
          void scan(node, takesMs);
        agenda.at(nowMs + 5, again);
      };
      agenda.at(nowMs, again);
    },
  };
}

export type World = ReturnType<typeof createWorld>;
