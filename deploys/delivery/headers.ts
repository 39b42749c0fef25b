import type { Secret } from '../../shared/secret.ts';
import type { EventKind } from './event.ts';
import { signatureOf } from './signature.ts';

/** The secrets of a webhook at an instant. `next` is there while a rotation waits to take over. */
export type Secrets = Readonly<{ current: Secret; next: Secret | undefined }>;

type Signed = Readonly<{
  deliveryId: string;
  eventKind: EventKind;
  body: Uint8Array;
  /** Unix seconds. */
  signedAt: number;
}>;

/** The headers of one attempt (spec 6.3); in a rotation the next secret signs too, in a header of its own. */
export function eventHeaders(attempt: Signed, secrets: Secrets): Readonly<Record<string, string>> {
  const { deliveryId, eventKind, body, signedAt } = attempt;
  return {
    'X-Service-Event': eventKind,
    'X-Service-Delivery': deliveryId,
    'X-Service-Timestamp': String(signedAt),
    'X-Service-Signature': signatureOf(secrets.current, signedAt, body),
    ...(secrets.next && { 'X-Service-Signature-Next': signatureOf(secrets.next, signedAt, body) }),
  };
}
