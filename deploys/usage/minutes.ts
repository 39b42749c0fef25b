import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { HOUR_MS } from './calendar.ts';
import { createReadPortions } from './traffic.ts';

/** Between two readings: with a gateway's own second, minutes are about six seconds behind. */
const READ_PAUSE_MS = 5_000;
/** A long reading is followed by a pause of ten times its length: very many cells take at most a tenth of a core. */
const PAUSE_FACTOR = 10;

type Sum = MinuteCounts & Readonly<{ hour: number; accountId: number }>;
type MinuteSums = Map<string, Sum>;

type MinutesDeps = Readonly<{
  /** A connection to the ledger that reads. */
  ledger: Store;
  clock: Clock;
  /** Called when a reading failed; the next one makes up for it. */
  noteBroken(error: unknown): void;
}>;

/**
 * Counts calls by minute from the growth of the hours between two readings, whichever process writes them: in the middle
 * between the readings. Late cells, as from a host that could not reach Redis, count in the minute of their arrival.
 */
export function createLiveMinutes({ ledger, clock, noteBroken }: MinutesDeps) {
  const minutes = createMinutes();
  const readPortions = createReadPortions<Sum>(ledger, clock, {
    select: `hour, account_id AS accountId, sum(calls) AS calls, sum(refused) AS refused, sum(errors) AS errors`,
    group: 'hour, account_id',
  });
  let before: Readonly<{ sums: MinuteSums; atMs: number }> | undefined;
  let sinceMs: number | undefined;

  /** Adds what every account counted in the present hour and the one before to the minutes, as far as it is new. */
  async function readOnce(signal: AbortSignal): Promise<void> {
    const nowMs = clock.now();
    const hours = { fromHour: Math.floor(nowMs / HOUR_MS) - 1, toHour: Number.MAX_SAFE_INTEGER };
    const sums: MinuteSums = new Map();
    for await (const rows of readPortions(hours, signal))
      for (const row of rows) {
        const name = `${row.hour} ${row.accountId}`;
        const { calls = 0, refused = 0, errors = 0 } = sums.get(name) ?? {};
        const sum = { calls: calls + row.calls, refused: refused + row.refused, errors: errors + row.errors };
        sums.set(name, { ...row, ...sum });
      }
    if (signal.aborted) return;
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
    /** Since when minutes are counted, in Unix milliseconds: earlier ones are zero because they were not read. `undefined`: not yet. */
    sinceMs: (): number | undefined => sinceMs,
    /** Reads until `signal` aborts. Never rejects. */
    run,
  };
}

/** Traffic of accounts just now, at most ten seconds behind what gateways of this host have written. */
export type LiveMinutes = ReturnType<typeof createLiveMinutes>;

type MinuteCounts = Readonly<{ calls: number; refused: number; errors: number }>;

/** One minute's counts; `minute` counts since 1970. */
export type Minute = MinuteCounts & Readonly<{ minute: number }>;

const MINUTE_MS = 60_000;
const MINUTES = 60;
/** Numbers of a minute in a ring: which it is, since 1970, and its three counts. */
const WIDTH = 4;
/** Where a ring has its latest minute once more. */
const LATEST = MINUTES * WIDTH;
/** Accounts in memory, 1 KB each; further ones count in the totals alone, until others have been idle for an hour. */
const ACCOUNTS_MAX = 20_000;

/** Kept in memory alone: in the ledger they would be a row per active account every few seconds. */
export function createMinutes() {
  const total = emptyRing();
  const accounts = new Map<number, Uint32Array>();

  return {
    add(accountId: number, minute: number, counts: MinuteCounts): void {
      addTo(total, minute, counts);
      let ring = accounts.get(accountId);
      if (ring === undefined) {
        if (accounts.size >= ACCOUNTS_MAX) return;
        accounts.set(accountId, (ring = emptyRing()));
      }
      addTo(ring, minute, counts);
    },
    /** The hour up to and with the minute of `nowMs`, the oldest first; zeros for an account that did nothing. */
    of: (accountId: number, nowMs: number): readonly Minute[] => hourOf(accounts.get(accountId), nowMs),
    /** The same over all accounts. */
    totals: (nowMs: number): readonly Minute[] => hourOf(total, nowMs),
    /** Lets go of accounts that did nothing in the hour before `nowMs`. */
    forgetIdle(nowMs: number): void {
      const oldest = minuteAt(nowMs) - MINUTES;
      for (const [id, ring] of accounts) if ((ring[LATEST] ?? 0) <= oldest) accounts.delete(id);
    },
  };
}

function minuteAt(atMs: number): number {
  return Math.floor(atMs / MINUTE_MS);
}

function emptyRing(): Uint32Array {
  return new Uint32Array(LATEST + 1);
}

function addTo(ring: Uint32Array, minute: number, { calls, refused, errors }: MinuteCounts): void {
  const at = (minute % MINUTES) * WIDTH;
  const [held = 0, ...before] = ring.subarray(at, at + WIDTH);
  if (held > minute) return; // an hour later, and the place is that minute's
  const [a = 0, b = 0, c = 0] = held === minute ? before : [];
  ring.set([minute, a + calls, b + refused, c + errors], at);
  ring[LATEST] = Math.max(ring[LATEST] ?? 0, minute);
}

function hourOf(ring: Uint32Array | undefined, nowMs: number): readonly Minute[] {
  return Array.from({ length: MINUTES }, (_, i) => {
    const minute = minuteAt(nowMs) - MINUTES + 1 + i;
    const at = (minute % MINUTES) * WIDTH;
    const [held, calls = 0, refused = 0, errors = 0] = ring?.subarray(at, at + WIDTH) ?? [];
    return held === minute ? { minute, calls, refused, errors } : { minute, calls: 0, refused: 0, errors: 0 };
  });
}
