/** What was counted in one minute. */
export type MinuteCounts = Readonly<{ calls: number; refused: number; errors: number }>;

/** One minute's counts; `minute` counts since 1970. */
export type Minute = MinuteCounts & Readonly<{ minute: number }>;

/** The minutes of the last hour, in memory. */
export type Minutes = Readonly<{
  add(accountId: number, minute: number, counts: MinuteCounts): void;
  /** The hour up to and with the minute of `nowMs`, the oldest first; zeros for an account that did nothing. */
  of(accountId: number, nowMs: number): readonly Minute[];
  /** The same over all accounts. */
  totals(nowMs: number): readonly Minute[];
  /** Lets go of accounts that did nothing in the hour before `nowMs`. */
  forgetIdle(nowMs: number): void;
}>;

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
export function createMinutes(): Minutes {
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
    of: (accountId, nowMs) => hourOf(accounts.get(accountId), minuteAt(nowMs)),
    totals: (nowMs) => hourOf(total, minuteAt(nowMs)),
    forgetIdle,
  };
}

/** The minute since 1970 that the instant is in. */
export function minuteAt(atMs: number): number {
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
