import { type Bucket, refilled, type Take, take } from '../limits/bucket.ts';

/**
 * A node's own bucket while the centre does not answer: its share of the account's rate (limits.md 3.6). The shares
 * of all nodes sum to about one. Mutable: `spent` counts what was admitted from it and not yet told to the centre.
 */
export type LocalShare = {
  bucket: Bucket;
  readonly rps: number;
  readonly burst: number;
  readonly sinceMs: number;
  spent: number;
};

/** A bucket of an account in use starts with what so much time refills: the lease was spent a moment ago. */
const START_SECONDS = 0.1;

/** `share` above 0 up to 1. An account that was at rest starts with a whole share of its burst, one in use near empty. */
export function localShare(
  plan: Readonly<{ rps: number; burst: number }>,
  share: number,
  atRest: boolean,
  nowMs: number,
): LocalShare {
  const rps = plan.rps * share;
  const burst = Math.max(1, plan.burst * share);
  return {
    bucket: { tokens: atRest ? burst : rps * START_SECONDS, atMs: nowMs },
    rps,
    burst,
    sinceMs: nowMs,
    spent: 0,
  };
}

/** What `calls` would get now; nothing is taken. */
export function lookAtShare(local: LocalShare, calls: number, nowMs: number): Take {
  return take(local.bucket, local, calls, nowMs);
}

/** Whether a new bucket of an account at rest would hold no more. */
export function isWhole(local: LocalShare, nowMs: number): boolean {
  return refilled(local.bucket, local, nowMs).tokens >= local.burst;
}

/** Takes what a look has found. */
export function takeOfShare(local: LocalShare, calls: number, nowMs: number): void {
  const { tokens, atMs } = refilled(local.bucket, local, nowMs);
  local.bucket = { tokens: tokens - calls, atMs };
  local.spent += calls;
}
