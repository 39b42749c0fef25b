import type { Clock } from '../../shared/clock.ts';
import { COMBINE_MS } from './lease-reports.ts';
import type { Leases } from './leases.ts';
import type { SpentRow } from '../limits/journal.ts';
import type { LeaseStore, Message, Reply, Sender } from './messages.ts';
import type { ScanLeases } from './scan-leases.ts';

/** Carries messages between the leases and their store, off the way of requests. */
export type LeaseSync = ReturnType<typeof createLeaseSync>;
export type StoreLink = Pick<LeaseSync, 'isOut' | 'failure' | 'counts'>;

type LeaseSyncOptions = Readonly<{
  accounts: Leases;
  scans: Pick<ScanLeases, 'collect' | 'release' | 'hear'>;
  store: LeaseStore;
  clock: Clock;
  node: string;
  fence: number;
}>;

const TICK_MS = 20;
const FORGET_A_TICK = 2_000;
/** Messages of a kind in one call of the store, and calls under way: a stuck store fills no memory. */
const MESSAGES_MAX = 512;
const CALLS_MAX = 16;
/** Calls in a row without a reply, more than can be under way, after which the store counts as out and is tried once a second. */
const FAILED_MAX = CALLS_MAX + 4;
const PROBE_MS = 1_000;
/** The pause before a report that failed is tried again. */
const RESYNC_MS = 200;

export function createLeaseSync(options: LeaseSyncOptions) {
  const { accounts, scans, store, clock, node, fence } = options;
  const counts = { messages: 0, asks: 0, failed: 0 };
  let seq = 0;
  let underWay = 0;
  let failedInRow = 0;
  let sentMs = Number.NEGATIVE_INFINITY;
  let isFlushing = false;
  let roundTripMs = 5;
  let gatheredMs = clock.monotonic();

  /** The store is known not to reply: requests do not wait for it. */
  const isOut = () => failedInRow >= FAILED_MAX;

  /** Sends what is due at the end of this turn of the event loop. */
  function flushSoon(): void {
    if (isFlushing) return;
    isFlushing = true;
    setImmediate(() => {
      isFlushing = false;
      flush();
    });
  }

  /** Sends what cannot wait, and what was gathered when it is time, or at half time along with what is sent anyway. */
  function flush(): void {
    const nowMs = clock.monotonic();
    if (underWay >= CALLS_MAX || (isOut() && nowMs - sentMs < PROBE_MS)) return;
    // What is spent from the decision to send until the reply is read: two turns and a slow round trip.
    const aheadMs = 2 * TICK_MS + 2 * roundTripMs;
    const due = scans.collect(nowMs, MESSAGES_MAX);
    due.push(...accounts.collect(nowMs, aheadMs, MESSAGES_MAX, false));
    // A store that is back is found by whatever account has something to report, urgent or not.
    if (isOut() || nowMs - gatheredMs >= (due.length > 0 ? COMBINE_MS / 2 : COMBINE_MS)) {
      const gathered = accounts.collect(nowMs, aheadMs, MESSAGES_MAX, true);
      due.push(...gathered);
      // What had no room is gathered in the next turn.
      if (gathered.length < MESSAGES_MAX) gatheredMs = nowMs;
    }
    if (due.length === 0) return;
    sentMs = nowMs;
    void send(due);
  }

  async function send(messages: readonly Message[]): Promise<void> {
    const replies = await call({ node, fence, seq: ++seq }, messages);
    const nowMs = clock.monotonic();
    for (const [at, message] of messages.entries()) {
      accounts.hear(message, replies[at], nowMs);
      scans.hear(message, replies[at], nowMs);
    }
  }

  async function call(sender: Sender, messages: readonly Message[]): Promise<readonly (Reply | undefined)[]> {
    const callMs = clock.monotonic();
    counts.messages++;
    counts.asks += messages.length;
    underWay++;
    const replies = await store.sync(sender, messages);
    underWay--;
    if (replies.some((reply) => reply !== undefined)) {
      failedInRow = 0;
      roundTripMs += (clock.monotonic() - callMs - roundTripMs) / 8;
    } else {
      failedInRow++;
      counts.failed++;
    }
    return replies;
  }

  return {
    flushSoon,
    /** Keeps leases fresh until `signal` aborts. */
    async run(signal: AbortSignal) {
      while (!signal.aborted) {
        await clock.sleep(TICK_MS, signal);
        flush();
        accounts.forgetIdle(clock.monotonic(), FORGET_A_TICK);
      }
    },
    /** Returns everything held, when no request is under way any more; else credits wait for this node for a day. */
    async release() {
      const { failed } = counts;
      do {
        const nowMs = clock.monotonic();
        const due = [...accounts.release(nowMs, MESSAGES_MAX), ...scans.release(nowMs, MESSAGES_MAX)];
        if (due.length === 0) return;
        await send(due);
      } while (failed === counts.failed);
    },
    /** Reports what a node has ever spent, by its rows of the ledger, until all have a reply: the store may have lost it. */
    async resync(of: string, spent: readonly SpentRow[], signal: AbortSignal) {
      const isOwn = of === node;
      // Accounts in memory report themselves.
      let rest = spent.filter(({ accountId }) => !isOwn || !accounts.resync(accountId)).map(reportOf);
      flushSoon();
      while (rest.length > 0 && !signal.aborted) {
        const part = rest.slice(0, MESSAGES_MAX);
        // Of a node that does not run any more, below every fence, only the counters are taken.
        const sender = isOwn ? { node, fence, seq: ++seq } : { node: of, fence: 0, seq: 0 };
        const replies = await call(sender, part);
        const missed = part.filter((_, at) => replies[at] === undefined);
        rest = [...missed, ...rest.slice(part.length)];
        if (missed.length > 0) await clock.sleep(RESYNC_MS, signal);
      }
    },
    isOut,
    failure: store.failure,
    /** Counts of messages since the process started. */
    counts: () => counts,
  };
}

/** Revision -1 is older than every other: the account's total comes from nodes that serve it. */
function reportOf({ accountId, charged, refunded }: SpentRow): Message {
  const credits = { total: 0, charged, refunded, held: 0, wanted: 0, needed: 0 };
  return { accountId, revision: -1, credits };
}
