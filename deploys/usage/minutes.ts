import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { HOUR_MS } from './calendar.ts';
import { createReadPortions } from './traffic.ts';

/** Between two readings: with a gateway's own second, minutes are about six seconds behind. */
const READ_PAUSE_MS = 5_000;
/** A long reading is followed by a pause of ten times its length: very many cells take at most a tenth of a core. */
const PAUSE_FACTOR = 10;

type Sum = MinuteCounts & Readonly<{ hour: number; accountId: number }>;
type Sums = Map<string, Sum>;

type Deps = Readonly<{
  /** A connection to the ledger that reads. */
  ledger: Store;
  clock: Clock;
  /** Called when a reading failed; the next one makes up for it. */
  noteBroken(error: unknown): void;
}>;

/**
 * Finds out what was counted minute by minute from what hours grow by, whoever writes them. What is found grown is
 * counted in the middle of the time since the reading before. What comes late, as from a host that Redis was away from,
 * is counted when it comes.
 */
export function createLiveMinutes({ ledger, clock, noteBroken }: Deps) {
  const minutes = createMinutes();
  const readPortions = createReadPortions<Sum>(ledger, clock, {
    select: `hour, account_id AS accountId, sum(calls) AS calls, sum(refused) AS refused, sum(errors) AS errors`,
    group: 'hour, account_id',
  });
  let before: Readonly<{ sums: Sums; atMs: number }> | undefined;
  let sinceMs: number | undefined;

  /** What every account counted in this hour and those after it; `undefined` when `signal` aborted. */
  async function readSums(fromHour: number, signal: AbortSignal): Promise<Sums | undefined> {
    const sums: Sums = new Map();
    for await (const rows of readPortions({ fromHour, toHour: Number.MAX_SAFE_INTEGER }, signal))
      for (const row of rows) {
        const name = `${row.hour} ${row.accountId}`;
        sums.set(name, added(sums.get(name), row));
      }
    return signal.aborted ? undefined : sums;
  }

  async function readOnce(signal: AbortSignal): Promise<void> {
    const nowMs = clock.now();
    const fromHour = Math.floor(nowMs / HOUR_MS) - 1;
    const sums = await readSums(fromHour, signal);
    if (sums === undefined) return;
    if (before !== undefined) {
      const minute = minuteAt((before.atMs + nowMs) / 2);
      for (const [name, sum] of sums) count(minute, before.sums.get(name), sum);
    }
    sinceMs ??= nowMs;
    before = { sums, atMs: nowMs };
    minutes.forgetIdle(nowMs);
  }

  function count(minute: number, was: Sum | undefined, sum: Sum): void {
    // A charge that could not be written takes its calls back: less than before is nothing.
    const grown = (name: keyof MinuteCounts) => Math.max(0, sum[name] - (was?.[name] ?? 0));
    const counts = { calls: grown('calls'), refused: grown('refused'), errors: grown('errors') };
    if (counts.calls + counts.refused + counts.errors > 0) minutes.add(sum.accountId, minute, counts);
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const fromMs = clock.monotonic();
      try {
        await readOnce(signal);
      } catch (error) {
        noteBroken(error);
      }
      await clock.sleep(Math.max(READ_PAUSE_MS, PAUSE_FACTOR * (clock.monotonic() - fromMs)), signal);
    }
  }

  return {
    /** The last hour of an account by minute, the oldest first. */
    recentMinutes: minutes.of,
    /** The same over all accounts. */
    recentTotals: minutes.totals,
    /** Since when minutes are counted, in Unix milliseconds: earlier ones are zeros that nobody counted. `undefined`: not yet. */
    sinceMs: (): number | undefined => sinceMs,
    /** Reads until `signal` aborts. Never rejects. */
    run,
  };
}

/** What accounts do just now, at most ten seconds behind what gateways of this host have written. */
export type LiveMinutes = ReturnType<typeof createLiveMinutes>;

function added(sum: Sum | undefined, more: Sum): Sum {
  if (sum === undefined) return more;
  return {
    ...sum,
    calls: sum.calls + more.calls,
    refused: sum.refused + more.refused,
    errors: sum.errors + more.errors,
  };
}

/** What was counted in one minute. */
type MinuteCounts = Readonly<{ calls: number; refused: number; errors: number }>;

/** One minute's counts; `minute` counts since 1970. */
export type Minute = MinuteCounts & Readonly<{ minute: number }>;

const MINUTE_MS = 60_000;
const MINUTES = 60;
const COUNTERS = 3;
/**
 * Accounts that are held; of further ones only the totals know, until others have been idle for an hour. 800 bytes
 * each.
 */
const ACCOUNTS_MAX = 20_000;

/** A ring of 60 minutes: slot `minute % 60` is of the minute that `minutes` says. */
type Ring = { readonly counts: Uint32Array; readonly minutes: Uint32Array; last: number };

/**
 * Minutes live in memory and begin anew with the process: what they say stands in the hours as well, and to keep them
 * in the ledger would write a row per active account every few seconds beside gateways that write charges.
 */
export function createMinutes() {
  const total = emptyRing();
  const accounts = new Map<number, Ring>();

  function add(accountId: number, minute: number, counts: MinuteCounts): void {
    addTo(total, minute, counts);
    let ring = accounts.get(accountId);
    if (ring === undefined) {
      if (accounts.size >= ACCOUNTS_MAX) return;
      accounts.set(accountId, (ring = emptyRing()));
    }
    addTo(ring, minute, counts);
  }

  function forgetIdle(nowMs: number): void {
    const oldest = minuteAt(nowMs) - MINUTES;
    for (const [id, { last }] of accounts) if (last <= oldest) accounts.delete(id);
  }

  return {
    add,
    /** The hour up to and with the minute of `nowMs`, the oldest first; zeros for an account that did nothing. */
    of: (accountId: number, nowMs: number): readonly Minute[] =>
      hourOf(accounts.get(accountId), minuteAt(nowMs)),
    /** The same over all accounts. */
    totals: (nowMs: number): readonly Minute[] => hourOf(total, minuteAt(nowMs)),
    /** Lets go of accounts that did nothing in the hour before `nowMs`. */
    forgetIdle,
  };
}

/** The minute since 1970 that the instant is in. */
function minuteAt(atMs: number): number {
  return Math.floor(atMs / MINUTE_MS);
}

function emptyRing(): Ring {
  return { counts: new Uint32Array(MINUTES * COUNTERS), minutes: new Uint32Array(MINUTES), last: 0 };
}

function addTo(ring: Ring, minute: number, { calls, refused, errors }: MinuteCounts): void {
  if (minute <= ring.last - MINUTES) return; // its slot is a later minute's
  const slot = minute % MINUTES;
  const at = slot * COUNTERS;
  if (ring.minutes[slot] !== minute) {
    ring.minutes[slot] = minute;
    ring.counts.fill(0, at, at + COUNTERS);
  }
  ring.last = Math.max(ring.last, minute);
  for (const [i, more] of [calls, refused, errors].entries())
    ring.counts[at + i] = (ring.counts[at + i] ?? 0) + more;
}

function hourOf(ring: Ring | undefined, now: number): readonly Minute[] {
  return Array.from({ length: MINUTES }, (_, i) => {
    const minute = now - MINUTES + 1 + i;
    const slot = minute % MINUTES;
    if (ring?.minutes[slot] !== minute) return { minute, calls: 0, refused: 0, errors: 0 };
    const [calls = 0, refused = 0, errors = 0] = ring.counts.subarray(slot * COUNTERS);
    return { minute, calls, refused, errors };
  });
}
