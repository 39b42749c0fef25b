const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `2026-11-21 22:05:09`, in UTC. */
export function utcText(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ');
}

/** How long something is or was, in its largest unit and rounded down: `45 s`, `4 min`, `3 h`, `12 d`. Never negative. */
export function spanText(spanMs: number): string {
  const span = Math.max(0, spanMs);
  if (span < MINUTE_MS) return `${Math.floor(span / SECOND_MS)} s`;
  if (span < HOUR_MS) return `${Math.floor(span / MINUTE_MS)} min`;
  if (span < 2 * DAY_MS) return `${Math.floor(span / HOUR_MS)} h`;
  return `${Math.floor(span / DAY_MS)} d`;
}

/** How far an instant is from now: `4 min ago`, `in 4 min`, `just now`. */
export function distanceText(atMs: number, nowMs: number): string {
  if (Math.abs(nowMs - atMs) < SECOND_MS) return 'just now';
  return atMs < nowMs ? `${spanText(nowMs - atMs)} ago` : `in ${spanText(atMs - nowMs)}`;
}
