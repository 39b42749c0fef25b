import { type Bucket, type Rate, refill, shortMs } from './bucket.ts';
import type { RateGrant } from './messages.ts';

/**
 * What one account's rate does while the authority does not reply: this process lets in its share of it from a bucket of
 * its own. The shares of all nodes sum to about one. Mutable: it is the account's state.
 *
 *     heard --no reply--> out --reply--> recovering --every node heard--> heard
 *
 * Recovering, the account goes on with its share until all nodes that had one are back: the first would else be granted
 * what the others still let in alone.
 */
export type Outage = {
  /** Since when the authority has not replied, or not all are back; `undefined` while it is heard. */
  sinceMs: number | undefined;
  /** This process's part of all offered calls, and the nodes that share the account, when all had reported. */
  share: number;
  nodes: number;
  /** Since when the authority has replied without a miss; `undefined` before its first reply. */
  heardSinceMs: number | undefined;
  bucket: OwnBucket | undefined;
};

/** `spent` counts what was let in from it and not yet reported; with `isEnded` nothing more is. */
type OwnBucket = Bucket & { sinceMs: number; spent: number; isEnded: boolean };

/** So long after the authority's first reply each node has reported what it still uses, or never will. */
const HEARD_MS = 2_000;

/** The bucket of an account in use starts with what so much time refills: the lease was spent a moment ago. */
const START_SECONDS = 0.1;

export function newOutage(share: number): Outage {
  return { sinceMs: undefined, share, nodes: 1, heardSinceMs: undefined, bucket: undefined };
}

/** Milliseconds after which `calls` may be let in alone; 0: now. `isCold`: the account was at rest, and its bucket is full. */
export function aloneWaitMs(
  outage: Outage,
  rate: Rate,
  calls: number,
  nowMs: number,
  isCold: boolean,
): number {
  const bucket = bucketOf(outage, rate, nowMs, isCold);
  refill(bucket, nowMs);
  return shortMs(bucket, calls);
}

/**
 * A new bucket holds no more than the last one has by now: a store that replies now and then would else fill it again
 * each time.
 */
function bucketOf(outage: Outage, plan: Rate, nowMs: number, isCold: boolean): OwnBucket {
  const before = outage.bucket;
  if (before?.isEnded === false) return before;
  const [rps, burst] = [plan.rps * outage.share, Math.max(1, plan.burst * outage.share)];
  let tokens = isCold ? burst : Math.min(burst, rps * START_SECONDS);
  if (before !== undefined) {
    Object.assign(before, { rps, burst });
    refill(before, nowMs);
    tokens = Math.min(tokens, before.tokens);
  }
  return (outage.bucket = { tokens, atMs: nowMs, rps, burst, sinceMs: nowMs, spent: 0, isEnded: false });
}

/** Takes what was found to be there. */
export function takeAlone({ bucket }: Outage, calls: number): void {
  if (bucket === undefined) return;
  bucket.tokens -= calls;
  bucket.spent += calls;
}

/** Whether a new bucket of an account at rest would hold no more. */
export function isWhole({ bucket }: Outage, nowMs: number): boolean {
  if (bucket === undefined) return true;
  refill(bucket, nowMs);
  return bucket.tokens >= bucket.burst;
}

/** Milliseconds that the account has done without the authority; 0 while it has not. */
export function aloneForMs({ sinceMs, bucket }: Outage, nowMs: number): number {
  const ownMs = bucket?.isEnded === false ? bucket.sinceMs : nowMs;
  return nowMs - Math.min(sinceMs ?? nowMs, ownMs);
}

/** Calls let in alone and not yet reported. */
export function aloneSpent({ bucket }: Outage): number {
  return bucket?.isEnded === false ? bucket.spent : 0;
}

/** A message had no reply. */
export function noteMiss(outage: Outage, sentMs: number): void {
  outage.heardSinceMs = undefined;
  outage.sinceMs ??= sentMs;
}

/** Notes the nodes of a reply; gives whether all that shared the account before have reported since the last outage. */
export function noteHeard(
  outage: Outage,
  { nodes, weights }: RateGrant,
  weight: number,
  lastHeardMs: number,
  nowMs: number,
): boolean {
  if (outage.heardSinceMs === undefined || nowMs - lastHeardMs > HEARD_MS) outage.heardSinceMs = nowMs;
  const areHeard = nowMs - outage.heardSinceMs >= HEARD_MS;
  if (!areHeard && nodes < outage.nodes) return false;
  outage.nodes = Math.max(1, nodes);
  if (areHeard) outage.share = Math.min(1, Math.max(1, weight) / Math.max(1, weights));
  return true;
}

/** The authority replies and all nodes are back: nothing more is let in alone. */
export function endOutage(outage: Outage): void {
  outage.sinceMs = undefined;
  if (outage.bucket !== undefined) Object.assign(outage.bucket, { spent: 0, isEnded: true });
}
