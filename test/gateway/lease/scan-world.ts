import { SCAN_FORGET_MS, type ScanState, topUpScans } from '../../../gateway/lease/centre-scans.ts';
import type { NodeId, ScanAsk } from '../../../gateway/lease/messages.ts';
import { createScanPlaces, type ScanPlaces } from '../../../gateway/lease/scan-places.ts';
import { createScanPermits, type ScanPermits } from '../../../gateway/limits/scan-permits.ts';
import { createAgenda } from './agenda.ts';
import type { Fate } from './world.ts';

export type ScanCentre = typeof topUpScans;

export type ScanWorldOptions = Readonly<{
  scans: number;
  nodes: number;
  topUp?: ScanCentre;
  fate?: () => Fate;
}>;

/** One gateway process: its permits over its places, and what it has under way. */
export type ScanNode = {
  readonly id: NodeId;
  readonly fence: number;
  readonly places: ScanPlaces;
  readonly permits: ScanPermits;
  readonly leave: AbortController;
  seq: number;
  running: number;
  waiting: number;
  done: number;
  alive: boolean;
};

const TICK_MS = 20;
const DEADLINE_MS = 100;
const ACCOUNT = 1;

/** One account's scans over several processes and their centre, on one virtual clock. */
export function createScanWorld(options: ScanWorldOptions) {
  const { nodes: count, topUp = topUpScans, fate } = options;
  const agenda = createAgenda();
  let nowMs = 1_000;
  let scans = options.scans;
  let revision = 1;
  let state: ScanState | undefined;
  let storeOut = false;
  let learnUntilMs = 0;
  const counts = { messages: 0, most: 0 };
  /** Messages that were executed, to be said again, and when. */
  const said: { atMs: number; execute(): void }[] = [];
  const nodes = Array.from({ length: count }, (_, i) => makeNode(`n${i}`, 1));

  function makeNode(name: string, fence: number): ScanNode {
    const node: ScanNode = {
      id: name as NodeId, // the brand is the identity file's to give
      fence,
      places: createScanPlaces({
        monotonic: () => nowMs,
        revision: () => revision,
        isOut: () => false,
        kick: () => agenda.at(nowMs, () => send(node)),
      }),
      get permits() {
        return permits;
      },
      leave: new AbortController(),
      seq: 0,
      running: 0,
      waiting: 0,
      done: 0,
      alive: true,
    };
    const permits = createScanPermits(node.places);
    agenda.at(nowMs, () => tick(node));
    return node;
  }

  function tick(node: ScanNode): void {
    if (!node.alive) return;
    send(node);
    agenda.at(nowMs + TICK_MS, () => tick(node));
  }

  function send(node: ScanNode): void {
    if (!node.alive) return;
    for (const ask of node.places.collect(nowMs, 256)) post(node, ask);
  }

  /** Sends one message on its way, which the network may lose, delay or deliver twice. */
  function post(node: ScanNode, ask: ScanAsk): void {
    const { thereMs, backMs, again } = fate?.() ?? { thereMs: 0.5, backMs: 0.5 };
    const by = { node: node.id, fence: node.fence, seq: ++node.seq };
    const execute = () => {
      const done = topUp(state, by, ask, Math.floor(nowMs) + 1_700_000_000_000, nowMs < learnUntilMs);
      state = done.state;
      return done.grant;
    };
    let settled = false;
    const settle = (answer: Parameters<ScanPlaces['settle']>[1]) => {
      if (settled || !node.alive) return;
      settled = true;
      node.places.settle([ask], answer, nowMs);
    };
    counts.messages++;
    agenda.at(nowMs + DEADLINE_MS, () => settle([]));
    if (thereMs === undefined || storeOut) return;
    agenda.at(nowMs + thereMs, () => {
      const grant = execute();
      said.push({ atMs: nowMs, execute });
      if (backMs !== undefined) agenda.at(nowMs + backMs, () => settle([{ kind: 'granted', grant }]));
    });
    if (again !== undefined) agenda.at(nowMs + thereMs + again, execute);
  }

  /** A scan comes to a node; once it runs it takes so long. */
  async function scan(node: ScanNode, takesMs: () => number): Promise<void> {
    if (!node.alive || !node.permits.hasRoom(ACCOUNT, scans)) return;
    node.waiting++;
    const giveBack = await node.permits.take(ACCOUNT, scans, node.leave.signal);
    node.waiting--;
    if (!node.alive) return;
    node.running++;
    counts.most = Math.max(counts.most, running());
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
    counts,
    scan,
    running,
    at: agenda.at,
    now: () => nowMs,
    plan: () => scans,
    state: () => state,
    setPlan(to: number) {
      scans = to;
      revision++;
    },
    setStoreOut: (is: boolean) => void (storeOut = is),
    /** The centre loses all it knew, and learns for a while. */
    lose(learnMs: number) {
      state = undefined;
      said.length = 0;
      learnUntilMs = nowMs + learnMs;
    },
    /** Says an executed message again, `back` before the last one, unless its node may have been forgotten since. */
    sayAgain(back: number) {
      const one = said.at(-1 - back);
      if (one !== undefined && nowMs - one.atMs < SCAN_FORGET_MS) one.execute();
    },
    crash(i: number) {
      const node = nodes[i];
      if (node !== undefined) node.alive = false;
    },
    restart(i: number) {
      const old = nodes[i];
      if (old !== undefined && !old.alive) nodes[i] = makeNode(old.id, old.fence + 1);
    },
    /** Keeps so many scans of a node under way or waiting until `untilMs`. */
    keepBusy(i: number, atOnce: number, takesMs: () => number, untilMs = Number.POSITIVE_INFINITY) {
      const again = () => {
        const node = nodes[i];
        if (nowMs >= untilMs || node === undefined) return;
        while (node.alive && node.running + node.waiting < atOnce && node.permits.hasRoom(ACCOUNT, scans))
          void scan(node, takesMs);
        agenda.at(nowMs + 5, again);
      };
      agenda.at(nowMs, again);
    },
    /** Lets time pass, and what waits for a promise have its turn at every instant. */
    async run(ms: number) {
      const untilMs = nowMs + ms;
      while (nowMs < untilMs) {
        agenda.runUntil(Math.min(untilMs, nowMs + 1), (at) => (nowMs = at));
        await Promise.resolve();
        await Promise.resolve();
        await Promise.resolve();
      }
    },
  };
}

export type ScanWorld = ReturnType<typeof createScanWorld>;
