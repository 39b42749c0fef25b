/** Tokens at an instant; `tokens` may be a fraction, and below zero while a large batch is paid off. */
export type Bucket = Readonly<{ tokens: number; atMs: number }>;

/** `burst` tokens at most, `rps` more every second. */
export type Rate = Readonly<{ burst: number; rps: number }>;

export type Take =
  | { readonly kind: 'taken'; readonly bucket: Bucket }
  /** Nothing was taken; after `waitMs` without other calls the same take succeeds. */
  | { readonly kind: 'short'; readonly bucket: Bucket; readonly waitMs: number };

/** Rounding of many small refills; far below one call. */
const EPSILON = 1e-6;

/**
 * Takes `calls` tokens at `nowMs` (monotonic), all or none. A batch needs `min(calls, burst)` tokens and takes all
 * of its own, so that one larger than the burst can pass and is then paid off (DESIGN 3.3).
 */
export function take(before: Bucket, rate: Rate, calls: number, nowMs: number): Take {
  const bucket = refilled(before, rate, nowMs);
  const need = Math.min(calls, rate.burst);
  if (bucket.tokens + EPSILON >= need) {
    return { kind: 'taken', bucket: { tokens: bucket.tokens - calls, atMs: bucket.atMs } };
  }
  return { kind: 'short', bucket, waitMs: ((need - bucket.tokens) / rate.rps) * 1_000 };
}

/** The bucket at `nowMs`. A clock that steps back mints nothing; a burst that shrank takes the surplus away. */
export function refilled({ tokens, atMs }: Bucket, { burst, rps }: Rate, nowMs: number): Bucket {
  const elapsedMs = Math.max(0, nowMs - atMs);
  return { tokens: Math.min(burst, tokens + (elapsedMs / 1_000) * rps), atMs: Math.max(nowMs, atMs) };
}

/** Whole seconds after which a call that was refused for `waitMs` succeeds; at least 1 (RFC 9110 10.2.3). */
export function retryAfterSeconds(waitMs: number): number {
  return Math.max(1, Math.ceil(waitMs / 1_000));
}
