import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../../shared/secret.ts';

/** Farthest that a timestamp may be from the receiver's clock (spec 6.4.3). */
const SKEW_SECONDS_MAX = 300;

/** The headers that a receiver verifies, as they came. */
type SignedHeaders = Readonly<{ timestamp: string; signature: string }>;

/**
 * Whether a request is ours and fresh, as a receiver decides it (spec 6.4): over the raw bytes of the body, in constant
 * time, and within 300 s of `nowSeconds`. It shares nothing with the code that signs.
 */
export function isSigned(
  secret: Secret,
  { timestamp, signature }: SignedHeaders,
  body: Uint8Array,
  nowSeconds: number,
): boolean {
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(nowSeconds - Number(timestamp)) > SKEW_SECONDS_MAX) return false;
  const hmac = createHmac('sha256', secret.reveal()).update(`${timestamp}.`).update(body);
  const expected = Buffer.from(`sha256=${hmac.digest('hex')}`);
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
