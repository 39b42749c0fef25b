const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];

/** Waits before the attempts 2 to 6, each from the end of the failed one (spec 8). */
export const RETRY_DELAYS_MS: readonly number[] = [
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
];

/** Automatic attempts of a delivery, the first included (spec 8). */
export const ATTEMPTS_MAX = RETRY_DELAYS_MS.length + 1;

/** The longest wait there is; whatever says it is due later was scheduled under a clock that was wrong. */
export const WAIT_MS_MAX = 2 * HOUR;

/** When attempt `number` (1 to 6) is followed by the next, having failed at `endedAtMs`; `undefined` after the last. */
export function retryAtMs(number: number, endedAtMs: number): number | undefined {
  const delayMs = RETRY_DELAYS_MS[number - 1];
  return delayMs === undefined ? undefined : endedAtMs + delayMs;
}
