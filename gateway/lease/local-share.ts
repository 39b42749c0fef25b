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
  /** The centre was told of it and answers again: nothing is let in from it, but the next one begins with its rest. */
  ended: boolean;
};

/** A bucket of an account in use starts with what so much time refills: the lease was spent a moment ago. */
const START_SECONDS = 0.1;

/**
 * `share` above 0 up to 1. An account that was at rest starts with a whole share of its burst, one in use near empty;
 * one that was alone a moment ago with no more than was left then, and refilled: a centre that answers now and then
 * would else give it this start each time.
 */
export function localShare(
  plan: Readonly<{ rps: number; burst: number }>,
  share: number,
  atRest: boolean,
  nowMs: number,
  before?: LocalShare,
): LocalShare {
  const rps = plan.rps * share;
  const burst = Math.max(1, plan.burst * share);
  const start = atRest ? burst : Math.min(burst, rps * START_SECONDS);
  const left = before === undefined ? start : refilled(before.bucket, { rps, burst }, nowMs).tokens;
  const bucket = { tokens: Math.min(start, left), atMs: nowMs };
  return { bucket, rps, burst, sinceMs: nowMs, spent: 0, ended: false };
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

/** The centre answers again, and is or will be told of what was spent. */
export function endShare(local: LocalShare): void {
  local.spent = 0;
  local.ended = true;
}
