/** Waits after failed readings, in milliseconds; the last one repeats. */
const RETRY_MS = [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000] as const;

/**
 * When to read next. Readings start on a fixed grid of `pollMs` from `firstStartMs`, so that what a reading takes
 * never adds up; starts that were missed are skipped. After `failures` failed readings in a row the next one comes
 * sooner, so that a backend that is just starting costs seconds and not a minute.
 */
export function nextStartMs(turn: {
  firstStartMs: number;
  pollMs: number;
  nowMs: number;
  failures: number;
}): number {
  const { firstStartMs, pollMs, nowMs, failures } = turn;
  const elapsed = Math.max(0, nowMs - firstStartMs);
  const onGrid = firstStartMs + (Math.floor(elapsed / pollMs) + 1) * pollMs;
  if (failures === 0) return onGrid;
  const retryMs = RETRY_MS[Math.min(failures, RETRY_MS.length) - 1] ?? pollMs;
  return Math.min(onGrid, nowMs + retryMs);
}
