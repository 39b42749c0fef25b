import { createHmac } from 'node:crypto';
import { unreachable } from '../../shared/brand.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Secret } from '../../shared/secret.ts';
import type { Claim } from '../outbox/claim.ts';
import type { Result } from '../outbox/outbox.ts';
import { type AttemptEnd, type Phases, type Sent, verdictOf } from '../outbox/outcome.ts';
import {
  createResolvePublic,
  literalOf,
  type NetworkPolicy,
  urlProblemOf,
  type ResolvedHost,
} from './policy.ts';
import { createPost, createStopwatch, type Post, type Posted } from './post.ts';

/** The secrets a webhook signs with at `atMs`, Unix milliseconds. Throws when they cannot be unsealed. */
export type SecretsOf = (webhookId: string, atMs: number) => Secrets;

/** What only whoever starts the app can give: the network, and the secrets. */
export type Sending = Readonly<{ send: Send; secretsOf: SecretsOf }>;

/**
 * One attempt of what was claimed: signed with the secrets of this moment, sent to the URL of this moment. Never
 * rejects: what breaks inside this service is a failed attempt too, so it is bounded as those are.
 */
export async function attempt(
  claim: Claim,
  {
    send,
    secretsOf,
    clock,
    noteBroken,
  }: Sending & Readonly<{ clock: Clock; noteBroken(error: unknown): void }>,
  signal: AbortSignal,
): Promise<Result> {
  try {
    const signedAt = Math.floor(claim.claimedAtMs / 1_000);
    const headers = eventHeaders(claim, signedAt, secretsOf(claim.webhookId, claim.claimedAtMs));
    const sent = await send({ url: new URL(claim.url), headers, body: claim.body }, signal);
    return { claim, verdict: verdictOf(sent), sent, headers, endedAtMs: clock.now() };
  } catch (error) {
    noteBroken(error);
    const verdict = { kind: 'failed', error: 'internal_error' } as const;
    return { claim, verdict, sent: undefined, headers: undefined, endedAtMs: clock.now() };
  }
}

/** The secrets of a webhook at an instant. `next` is there while a rotation waits to take over. */
type Secrets = Readonly<{ current: Secret; next: Secret | undefined }>;

/** The headers of one attempt (docs/spec.md 4.2); in a rotation the next secret signs too, in a header of its own. */
export function eventHeaders(
  { deliveryId, eventKind, body }: Pick<Claim, 'deliveryId' | 'eventKind' | 'body'>,
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
 * The event signature (docs/spec.md 4.2): `sha256=` and the lowercase hex of HMAC-SHA256 over `<timestamp>.<raw body>`. The key
 * is the UTF-8 of the whole secret as it was shown, prefix included. `timestampSeconds` is the Unix second at which
 * this attempt is signed.
 */
export function signatureOf(secret: Secret, timestampSeconds: number, body: Uint8Array): string {
  const hmac = createHmac('sha256', secret.reveal()).update(`${timestampSeconds}.`).update(body);
  return `sha256=${hmac.digest('hex')}`;
}

/**
 * One POST to a receiver, at most 13 s long: 3 s to find its addresses and 10 s for the rest. Never rejects. It ends
 * at once when `signal` aborts, as `aborted`, or with what has been answered if there is a status line.
 */
export type Send = (post: Post, signal: AbortSignal) => Promise<Sent>;

/** A sender that goes only where `policy` lets it. */
export function createSender(policy: NetworkPolicy, clock: Clock): Send {
  const resolvePublic = createResolvePublic(policy, clock);
  const postPinned = createPost(policy.ca, clock);

  return async function send(post, signal) {
    const watch = createStopwatch(clock);
    const problem = urlProblemOf(post.url, policy);
    if (problem !== undefined)
      return { kind: 'refused', reason: 'blocked_url', detail: problem, phases: watch.phases() };
    const resolved = await resolvePublic(literalOf(post.url) ?? post.url.hostname, signal);
    if (signal.aborted)
      return { kind: 'failed', code: 'aborted', detail: 'given up', phases: watch.phases() };
    if (resolved.kind !== 'public') return { ...unsent(resolved), phases: watch.phases() };
    watch.ended('dnsMs');
    return sentFrom(await postPinned({ ...post, pins: resolved.pins }, watch, signal), watch.phases());
  };
}

function unsent(resolved: Exclude<ResolvedHost, { kind: 'public' }>): AttemptEnd {
  switch (resolved.kind) {
    case 'not-public':
      return { kind: 'refused', reason: 'blocked_address', detail: resolved.addresses.join(', ') };
    case 'no-address':
      return { kind: 'failed', code: 'dns_error', detail: 'the name has no address' };
    case 'unresolved':
      return { kind: 'failed', code: 'dns_error', detail: resolved.code };
    case 'timed-out':
      return { kind: 'failed', code: 'dns_timeout', detail: 'no answer from DNS' };
    default:
      return unreachable(resolved);
  }
}

function sentFrom(posted: Posted, phases: Phases): Sent {
  if (posted.kind !== 'wrong-peer') return { ...posted, phases };
  const detail = `connected to ${posted.remoteAddress}, which was not vetted`;
  return { kind: 'refused', reason: 'blocked_address', detail, phases };
}
