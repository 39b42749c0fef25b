import type { Clock } from '../../shared/clock.ts';
import { COMBINE_MS, type Leases } from './leases.ts';
import type { Journal, SpentRow } from './journal.ts';
import type { LeaseStore, Message, Reply, Sender } from './messages.ts';
import type { ScanLeases } from './scans.ts';

/** Carries messages between the leases and their store, off the way of requests. */
export type LeaseSync = ReturnType<typeof createLeaseSync>;

/** What can be seen of the link between a process and the store that it shares limits by. */
export type StoreLink = Pick<LeaseSync, 'isOut' | 'counts'>;

type LeaseSyncOptions = Readonly<{
  accounts: Leases;
  scans: ScanLeases;
  store: LeaseStore;
  journal: Journal;
  clock: Clock;
  node: string;
  fence: number;
}>;

const TICK_MS = 20;

/** Messages in one call of the store, calls under way (a stuck store fills no memory), and full calls in one turn. */
const MESSAGES_MAX = 256;
const CALLS_MAX = 16;
const ROUNDS_MAX = 5;

/** While the store is out, a probe is about so many accounts. */
const PROBE_MESSAGES = 8;

/** What could not be reported is tried again after this pause. */
const RESYNC_MS = 200;

const FORGET_A_TICK = 2_000;

export function createLeaseSync(options: LeaseSyncOptions) {
  const { accounts, scans, store, journal, clock, node, fence } = options;
  const breaker = createBreaker();
  const counts = { messages: 0, asks: 0, failed: 0 };
  let seq = 0;
  let underWay = 0;
  let isFlushing = false;
  let roundTripMs = 5;
  let gatheredMs = clock.monotonic();

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
    if (underWay >= CALLS_MAX || !breaker.maySend(nowMs)) return;
    const isProbe = breaker.isOpen();
    const max = isProbe ? PROBE_MESSAGES : MESSAGES_MAX;
    // What is spent from the decision to send until the reply is read: two turns and a slow round trip.
    const aheadMs = 2 * TICK_MS + 2 * roundTripMs;
    const scansDue = scans.collect(nowMs, max);
    // A store that is back is found by whatever account has something to report, urgent or not.
    let due = accounts.collect(nowMs, aheadMs, max, isProbe);
    const isCall = due.length + scansDue.length > 0;
    if (isCall) breaker.noteSent(nowMs);
    const gathers = !isProbe && nowMs - gatheredMs >= (isCall ? COMBINE_MS / 2 : COMBINE_MS);
    if (gathers) due.push(...accounts.collect(nowMs, aheadMs, max - due.length, true));
    void send([...due, ...scansDue]);
    for (let full = 1; gathers && due.length === max && full < ROUNDS_MAX && underWay < CALLS_MAX; full++) {
      due = accounts.collect(nowMs, aheadMs, max, true);
      void send(due);
    }
    // What had no room is gathered in the next turn.
    if (gathers && due.length < max) gatheredMs = nowMs;
  }

  /** The store must never count a charge that a crash could take from the journal: its message waits until it is durable. */
  async function send(messages: readonly Message[]): Promise<void> {
    let sent = messages;
    const undurable = messages.filter(
      ({ accountId, credits }) => credits !== undefined && !journal.isDurable(accountId),
    );
    try {
      if (undurable.length > 0)
        await Promise.all(undurable.map(({ accountId }) => journal.append(accountId)));
    } catch {
      const nowMs = clock.monotonic();
      for (const message of undurable) accounts.settle({ ...message, rate: undefined }, undefined, nowMs);
      // Rates and scans do not need the journal.
      sent = messages.map((each) => (undurable.includes(each) ? { ...each, credits: undefined } : each));
    }
    if (sent.length === 0) return;
    const replies = await call({ node, fence, seq: ++seq }, sent);
    const nowMs = clock.monotonic();
    for (const [at, message] of sent.entries()) {
      accounts.settle(message, replies[at], nowMs);
      scans.settle(message, replies[at], nowMs);
    }
  }

  async function call(sender: Sender, messages: readonly Message[]): Promise<readonly (Reply | undefined)[]> {
    const sentMs = clock.monotonic();
    counts.messages++;
    counts.asks += messages.length;
    underWay++;
    const replies = await store.sync(sender, messages);
    underWay--;
    const nowMs = clock.monotonic();
    const isAnswered = replies.some((reply) => reply !== undefined);
    if (isAnswered) roundTripMs += (nowMs - sentMs - roundTripMs) / 8;
    else counts.failed++;
    breaker.note(isAnswered, nowMs);
    return replies;
  }

  /** Reports rows until all have a reply, or `signal` aborts. */
  async function report(from: () => Sender, rows: readonly SpentRow[], signal: AbortSignal): Promise<void> {
    // Revision -1 is older than every other: the account's total comes from nodes that serve it.
    let rest: readonly Message[] = rows.map(({ accountId, charged, refunded }) => {
      const credits = { total: 0, charged, refunded, held: 0, wanted: 0, needed: 0 };
      return { accountId, revision: -1, credits };
    });
    while (rest.length > 0 && !signal.aborted) {
      const part = rest.slice(0, MESSAGES_MAX);
      const replies = await call(from(), part);
      const missed = part.filter((_, at) => replies[at] === undefined);
      rest = [...missed, ...rest.slice(part.length)];
      if (missed.length > 0) await clock.sleep(RESYNC_MS, signal);
    }
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
      while (failed === counts.failed) {
        const nowMs = clock.monotonic();
        const due = [...accounts.release(nowMs, MESSAGES_MAX), ...scans.release(nowMs, MESSAGES_MAX)];
        if (due.length === 0) return;
        await send(due);
      }
    },
    /**
     * Reports what a node has ever spent, by its rows of the ledger, as after the store may have lost its state. One that
     * does not run any more reports below every fence, so that only its counters are taken.
     */
    async resync(of: string, spent: readonly SpentRow[], signal: AbortSignal) {
      if (of !== node) return report(() => ({ node: of, fence: 0, seq: 0 }), spent, signal);
      const rows = spent.filter(({ accountId }) => !accounts.resync(accountId));
      flushSoon();
      await report(() => ({ node, fence, seq: ++seq }), rows, signal);
    },
    /** The store is known not to reply. */
    isOut: breaker.isOpen,
    /** What was sent since the process started. */
    counts: () => counts,
  };
}

const SPAN_MS = 6_000;
const CALLS_MIN = 20;
const FAILED_RATIO = 0.5;
const PROBE_MS = 1_000;

/**
 * Whether the store replies. Opens on the ratio of failed calls, not their number, so that a blip under load trips
 * nothing; while open one call a second is sent as a probe, and the first with a reply closes it.
 */
export function createBreaker() {
  let recent: { atMs: number; isAnswered: boolean }[] = [];
  let open = false;
  let probeMs = 0;
  return {
    note(isAnswered: boolean, nowMs: number): void {
      if (open) {
        recent = [];
        open = !isAnswered;
        return;
      }
      recent.push({ atMs: nowMs, isAnswered });
      recent = recent.filter(({ atMs }) => nowMs - atMs < SPAN_MS);
      const failed = recent.filter((each) => !each.isAnswered).length;
      open = recent.length >= CALLS_MIN && failed >= recent.length * FAILED_RATIO;
      if (open) probeMs = nowMs + PROBE_MS;
    },
    /** Nothing is expected of the store: requests do not wait for it. */
    isOpen: () => open,
    /** Whether a call may be sent now; while open, only a probe. */
    maySend: (nowMs: number) => !open || nowMs >= probeMs,
    /** Notes that one was sent: a turn in which nothing was due is no probe. */
    noteSent(nowMs: number): void {
      if (open) probeMs = nowMs + PROBE_MS;
    },
  };
}
