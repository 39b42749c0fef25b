/** How often one account's messages may be sent: one an interval, and a few at once after a rest. Mutable. */
export type Pace = { freeMs: number };

/** Messages that may follow each other after a rest. */
const AT_ONCE = 3;

/** When the next message may be sent; not after `nowMs` when it may be now. */
export function nextSendMs({ freeMs }: Pace, intervalMs: number): number {
  return freeMs - (AT_ONCE - 1) * intervalMs;
}

/** Notes that a message is sent at `nowMs`. */
export function noteSend(pace: Pace, intervalMs: number, nowMs: number): void {
  pace.freeMs = Math.max(pace.freeMs, nowMs) + intervalMs;
}
