/**
 * The arithmetic of rates, of one process and of the authority alike: whole micro-tokens, whole milliseconds, and rates in
 * micro-tokens a millisecond, so that every number is exact below 2^53 and what is refilled in parts sums up.
 */
export type Refilled = {
  /** Micro-tokens; below zero while a debt or a large batch is paid off. */
  micro: number;
  /** Micro-tokens a millisecond, which is thousandths of a call a second. */
  perMs: number;
  /** Tokens that it holds at most. */
  burst: number;
};

/** One refilled by a clock, at `atMs` last. Mutable. */
export type Bucket = Refilled & { atMs: number };

export const MICRO = 1_000_000;

/** A rate below a thousandth of a call a second counts as that. */
export function perMsOf(rps: number): number {
  return Math.max(1, Math.round(rps * 1_000));
}

/** Adds what so many milliseconds bring, up to `cap` micro-tokens; what is above that is lost. */
export function refillFor(bucket: Refilled, elapsedMs: number, cap = bucket.burst * MICRO): void {
  // A clock that leaps leaves the exact integers only far above the cap.
  bucket.micro = Math.min(cap, bucket.micro + elapsedMs * bucket.perMs);
}

/** Whole milliseconds after which it has so many tokens if none are taken; 0: it has them now. */
export function waitMsFor({ micro, perMs }: Refilled, tokens: number): number {
  return Math.max(0, Math.ceil((tokens * MICRO - micro) / perMs));
}

/** Brings the bucket to `nowMs`, but for a part of a millisecond. A clock that steps back mints nothing; a burst that shrank takes the surplus away. */
export function refill(bucket: Bucket, nowMs: number): void {
  const elapsedMs = Math.max(0, Math.floor(nowMs - bucket.atMs));
  bucket.atMs += elapsedMs;
  refillFor(bucket, elapsedMs);
}

/**
 * Milliseconds after which a refilled bucket has what `calls` need if nothing else is taken; 0: it has it now. A batch
 * needs `min(calls, burst)` tokens and takes one for each call, so that one larger than the burst can pass and is then
 * paid off.
 */
export function shortMs(bucket: Bucket, calls: number): number {
  return waitMsFor(bucket, Math.min(calls, bucket.burst));
}
