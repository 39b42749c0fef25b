import type { RateState } from '../limits/charge.ts';
import { retryAfterSeconds } from '../limits/bucket.ts';

/** Both fields, for every answer to a caller whose rate was looked at. */
export function rateFields(state: RateState): Readonly<Record<string, string>> {
  return { ratelimit: rateLeft(state), 'ratelimit-policy': ratePolicy(state) };
}

/** `RateLimit-Policy`: `q` calls in a full bucket, refilled over `w` seconds (draft-ietf-httpapi-ratelimit-headers-10). */
export function ratePolicy({ plan }: RateState): string {
  return `"calls";q=${plan.burst};w=${Math.max(1, Math.ceil(plan.burst / plan.rps))}`;
}

/** `RateLimit`: `r` calls left now, `t` seconds until the bucket is full again. */
export function rateLeft({ plan, tokens }: RateState): string {
  const fullMs = ((plan.burst - tokens) / plan.rps) * 1_000;
  return `"calls";r=${Math.max(0, Math.floor(tokens))};t=${retryAfterSeconds(fullMs)}`;
}
