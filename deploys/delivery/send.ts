import { createHmac } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import type { Secret } from '../../shared/secret.ts';
import type { ClaimedDelivery } from '../outbox/claim.ts';
import type { AttemptResult } from '../outbox/outbox.ts';
import { type AttemptEnd, type Sent, verdictOf } from '../outbox/outcome.ts';
import { createResolvePublic, literalOf, type NetworkPolicy, urlProblemOf } from './policy.ts';
import { createPost, createStopwatch, type Post, type Stopwatch } from './post.ts';

/** The secrets a webhook signs with at `atMs`, Unix milliseconds. Throws when they cannot be unsealed. */
export type SecretsOf = (webhookId: string, atMs: number) => Secrets;

export type Sending = Readonly<{ send: Send; secretsOf: SecretsOf }>;

/** One signed attempt. Never rejects: an internal error is a failed attempt, or it would be retried without end. */
export async function attempt(
  claim: ClaimedDelivery,
  parts: Sending & Readonly<{ clock: Clock; noteBroken(error: unknown): void }>,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const { send, secretsOf, clock } = parts;
  try {
    const signedAt = Math.floor(claim.claimedAtMs / 1_000);
    const headers = eventHeaders(claim, signedAt, secretsOf(claim.webhookId, claim.claimedAtMs));
    const sent = await send({ url: new URL(claim.url), headers, body: claim.body }, signal);
    return { claim, verdict: verdictOf(sent), sent, headers, endedAtMs: clock.now() };
  } catch (error) {
    parts.noteBroken(error);
    const verdict = { kind: 'failed', error: 'internal_error' } as const;
    return { claim, verdict, sent: undefined, headers: undefined, endedAtMs: clock.now() };
  }
}

/** The secrets of a webhook at an instant. `next` is there while a rotation waits to take over. */
type Secrets = Readonly<{ current: Secret; next: Secret | undefined }>;

/** The headers of one attempt (docs/spec.md 4.2); in a rotation the next secret signs too, in a header of its own. */
export function eventHeaders(
  { deliveryId, eventKind, body }: Pick<ClaimedDelivery, 'deliveryId' | 'eventKind' | 'body'>,
  signedAtSeconds: number,
  secrets: Secrets,
): Readonly<Record<string, string>> {
  return {
    'X-Service-Event': eventKind,
    'X-Service-Delivery': deliveryId,
    'X-Service-Timestamp': String(signedAtSeconds),
    'X-Service-Signature': signatureOf(secrets.current, signedAtSeconds, body),
    ...(secrets.next && { 'X-Service-Signature-Next': signatureOf(secrets.next, signedAtSeconds, body) }),
  };
}

/**
 * The event signature (docs/spec.md 4.2): `sha256=` and the lowercase hex of HMAC-SHA256 over `<timestamp>.<raw body>`,
 * keyed with the UTF-8 of the whole secret as it was shown, prefix included. The timestamp is the Unix second of signing.
 */
export function signatureOf(secret: Secret, timestampSeconds: number, body: Uint8Array): string {
  const hmac = createHmac('sha256', secret.reveal()).update(`${timestampSeconds}.`).update(body);
  return `sha256=${hmac.digest('hex')}`;
}

/** One POST: 3 s for DNS, 10 s for the rest. Never rejects. `signal` ends it as `aborted`, or with the answer so far. */
export type Send = (post: Post, signal: AbortSignal) => Promise<Sent>;

/** A sender that goes only where `policy` lets it. */
export function createSender(policy: NetworkPolicy, clock: Clock): Send {
  const resolvePublic = createResolvePublic(policy, clock);
  const postPinned = createPost(policy.ca, clock);

  async function sendOver(post: Post, watch: Stopwatch, signal: AbortSignal): Promise<AttemptEnd> {
    const problem = urlProblemOf(post.url, policy.ownHosts);
    if (problem !== undefined) return { kind: 'failed', code: 'blocked_url', detail: problem };
    const resolved = await resolvePublic(literalOf(post.url) ?? post.url.hostname, signal);
    if (signal.aborted) return { kind: 'failed', code: 'aborted', detail: 'the service is stopping' };
    if (resolved.kind !== 'public') return { ...resolved, kind: 'failed' };
    watch.ended('dnsMs');
    return postPinned({ ...post, pins: resolved.pins }, watch, signal);
  }

  return async function send(post, signal) {
    const watch = createStopwatch(clock);
    const end = await sendOver(post, watch, signal);
    return { ...end, phases: watch.phases() };
  };
}
