import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../shared/secret.ts';

/** Farthest that a timestamp may be from the receiver's clock (spec 6.4.3). */
const SKEW_SECONDS_MAX = 300;

/**
 * The event signature (spec 6.3): `sha256=` and the lowercase hex of HMAC-SHA256 over `<timestamp>.<raw body>`. The key
 * is the UTF-8 of the whole secret as it was shown, prefix included. `timestampSeconds` is the Unix second at which
 * this attempt is signed.
 */
export function signatureOf(secret: Secret, timestampSeconds: number, body: Uint8Array): string {
  return signatureOver(secret, `${timestampSeconds}`, body);
}

/** The headers that a receiver verifies, as they came. */
export type SignedHeaders = Readonly<{ timestamp: string; signature: string }>;

/**
 * Whether a request is ours and fresh, as a receiver decides it (spec 6.4): over the raw bytes of the body, in constant
 * time, and within 300 s of `nowSeconds`.
 */
export function isSigned(
  secret: Secret,
  { timestamp, signature }: SignedHeaders,
  body: Uint8Array,
  nowSeconds: number,
): boolean {
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(nowSeconds - Number(timestamp)) > SKEW_SECONDS_MAX) return false;
  const expected = Buffer.from(signatureOver(secret, timestamp, body));
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function signatureOver(secret: Secret, timestamp: string, body: Uint8Array): string {
  const hmac = createHmac('sha256', secret.reveal()).update(`${timestamp}.`).update(body);
  return `sha256=${hmac.digest('hex')}`;
}
