/**
 * How often one account's messages may be sent: one an interval, and a few at once after a rest. Mutable. The interval
 * may be another at every call.
 */
export type Pace = { lastMs: number; spare: number };

/** Messages that may follow at once on the first after a rest. */
const SPARE_MAX = 2;

export function newPace(): Pace {
  return { lastMs: Number.NEGATIVE_INFINITY, spare: SPARE_MAX };
}

/** When the next message may be sent; `nowMs` when it may be now. */
export function nextSendMs({ lastMs, spare }: Pace, intervalMs: number, nowMs: number): number {
  return spare > 0 ? nowMs : Math.max(nowMs, lastMs + intervalMs);
}

/** Notes that a message is sent at `nowMs`, in its turn or not. */
export function noteSend(pace: Pace, intervalMs: number, nowMs: number): void {
  const turns = Math.floor((nowMs - pace.lastMs) / intervalMs);
  pace.spare = Math.max(0, Math.min(SPARE_MAX, pace.spare + turns - 1));
  pace.lastMs = nowMs;
}
