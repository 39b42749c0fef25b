import type { Secret } from '../../../shared/secret.ts';
import { javascript } from './verifiers/snippet.ts';

const published = new Blob([javascript('verify.ts')], { type: 'text/javascript' });
const { verify } = await import(URL.createObjectURL(published));

/** Whether a request is ours and fresh, as the verifier of docs/webhooks.md decides it. */
export function isSigned(
  secret: Secret,
  { timestamp, signature }: Readonly<{ timestamp: string; signature: string }>,
  body: Uint8Array,
  nowSeconds: number,
): boolean {
  return verify(secret.reveal(), timestamp, body, signature, nowSeconds);
}
