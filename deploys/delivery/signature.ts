import { createHmac } from 'node:crypto';
import type { Secret } from '../../shared/secret.ts';

/**
 * The event signature (spec 6.3): `sha256=` and the lowercase hex of HMAC-SHA256 over `<timestamp>.<raw body>`. The key
 * is the UTF-8 of the whole secret as it was shown, prefix included. `timestampSeconds` is the Unix second at which
 * this attempt is signed.
 */
export function signatureOf(secret: Secret, timestampSeconds: number, body: Uint8Array): string {
  const hmac = createHmac('sha256', secret.reveal()).update(`${timestampSeconds}.`).update(body);
  return `sha256=${hmac.digest('hex')}`;
}
