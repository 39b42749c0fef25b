import type { Reading } from './probe.ts';
import type { Standing, Why } from './standing-state.ts';

const OTHER_CHAIN = 'of another chain';

/** Bad probes in a row until it is left out, and good ones until it is back: a single slip changes nothing. */
const BAD_PROBES = 2;
const GOOD_PROBES = 3;

/** A live node's slot grows every 0.4 s; one that stands still this long while the pool goes on has stopped. */
const STALLED_MS = 15_000;

/** What a probe is compared with. */
export type Measure = Readonly<{
  /** The slot of `referenceSlot`; 0: not known. */
  slot: number;
  /** When the newest slot of any backend last grew, on the monotonic clock. */
  movedAtMs: number;
  lagSlotsMax: number;
  nowMs: number;
}>;

/** Whether a backend's slot has grown lately, so that it may be measured by. */
export function isMoving({ movedAtMs }: Standing, nowMs: number): boolean {
  return nowMs - movedAtMs < STALLED_MS;
}

/**
 * The standing after one more probe. A node leaves above `lagSlotsMax` and counts as good again only at half of it, so
 * that one at the edge does not flap.
 */
export function standingAfter(before: Standing, reading: Reading, measure: Measure): Standing {
  const { slot, lagSlotsMax, nowMs } = measure;
  const tip = reading.kind === 'unreachable' ? 0 : reading.tip;
  const moved = tip > before.tip;
  const next = {
    reason: reading.kind === 'unreachable' ? reading.reason : '',
    tip: tip === 0 ? before.tip : tip,
    movedAtMs: moved || before.movedAtMs === -Infinity ? nowMs : before.movedAtMs,
    lagSlots: tip === 0 ? 0 : Math.max(0, slot - tip),
  };
  const isStalled =
    tip > 0 && nowMs - next.movedAtMs >= STALLED_MS && measure.movedAtMs > nowMs - STALLED_MS / 2;
  const allowed = before.out === undefined ? lagSlotsMax : lagSlotsMax / 2;
  const why = reason();
  const isOut = before.out !== undefined;
  const against = (why === undefined) === isOut ? before.against + 1 : 0;
  // Another chain is no slip.
  const isBad = against >= BAD_PROBES || why === OTHER_CHAIN;
  if (!isOut && isBad) return { ...next, out: why, against: 0, backAtMs: before.backAtMs };
  if (isOut && against >= GOOD_PROBES) return { ...next, out: undefined, against: 0, backAtMs: nowMs };
  return { ...next, out: isOut ? (why ?? before.out) : undefined, against, backAtMs: before.backAtMs };

  function reason(): Why | undefined {
    // What was of another chain still is when it does not answer.
    if (reading.kind === 'unreachable') return before.out === OTHER_CHAIN ? OTHER_CHAIN : 'unreachable';
    if (reading.isOtherChain) return OTHER_CHAIN;
    if (isStalled) return 'stalled';
    if (next.lagSlots > allowed) return 'lagging';
    return reading.healthy ? undefined : 'unhealthy';
  }
}

/** After its return a backend is given its callers back over this time, so that they do not all fall on it at once. */
const RAMP_MS = 10_000;

/** The share of its callers that a backend has back, 0 to 1. */
export function shareBack({ backAtMs }: Standing, nowMs: number): number {
  return Math.min(1, (nowMs - backAtMs) / RAMP_MS);
}
