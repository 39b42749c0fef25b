import type { Clock } from '../../shared/clock.ts';
import { unreachable } from '../../shared/brand.ts';
import { createStopwatch, type Phases } from './phases.ts';
import type { NetworkPolicy } from './policy.ts';
import type { BodyKind } from './post-body.ts';
import type { PostFailure } from './post-failure.ts';
import { createPost, type Posted } from './post.ts';
import { createVet, type Vetted } from './resolve.ts';
import { literalOf, urlProblemOf } from './url-rules.ts';

/**
 * What is sent in one attempt. The sender adds `content-type` and `user-agent` to `headers` unless they are there, and
 * the headers of the connection, which cannot be overridden.
 */
export type Post = Readonly<{ url: URL; headers: Readonly<Record<string, string>>; body: Uint8Array }>;

/**
 * One POST to a receiver, at most 13 s long: 3 s to find its addresses and 10 s for the rest. Never rejects. It ends
 * at once when `signal` aborts, as `aborted`, or with what has been answered if there is a status line.
 */
export type Send = (post: Post, signal: AbortSignal) => Promise<Sent>;

/**
 * Why there is no status line. `timeout`: none within 10 s. `bad_response`: not HTTP. `unreachable`: no route, or no
 * TCP connection within its time. `aborted`: given up by the caller, which says nothing about the receiver.
 * `internal_error`: the request could not be made, which is this service's fault.
 */
export type FailureCode = PostFailure | 'dns_error' | 'dns_timeout' | 'aborted' | 'internal_error';

/** Why nothing was sent: the URL breaks a rule, or one of the host's addresses is not public. */
export type RefusalReason = 'blocked_url' | 'blocked_address';

/**
 * How an attempt ended. `answered` is any final status, also one that is no success. `fields` are the answer's headers
 * in their order and spelling; `body` holds at most 16 KiB. `detail` is for operators and may name addresses; it
 * holds nothing of the request's headers or body. `remoteAddress` is the one that was connected to.
 */
export type Sent =
  | Readonly<{
      kind: 'answered';
      status: number;
      fields: readonly (readonly [name: string, value: string])[];
      body: Uint8Array;
      bodyKind: BodyKind;
      phases: Phases;
      remoteAddress: string;
    }>
  | Readonly<{ kind: 'failed'; code: FailureCode; detail: string; phases: Phases }>
  | Readonly<{ kind: 'refused'; reason: RefusalReason; detail: string; phases: Phases }>;

/** A sender that goes only where `policy` lets it. */
export function createSender(policy: NetworkPolicy, clock: Clock): Send {
  const vet = createVet(policy, clock);
  const postPinned = createPost(policy.ca, clock);

  return async function send(post, signal) {
    const watch = createStopwatch(clock);
    const problem = urlProblemOf(post.url, policy);
    if (problem !== undefined)
      return { kind: 'refused', reason: 'blocked_url', detail: problem, phases: watch.phases() };
    const vetted = await vet(literalOf(post.url) ?? post.url.hostname, signal);
    if (signal.aborted)
      return { kind: 'failed', code: 'aborted', detail: 'given up', phases: watch.phases() };
    if (vetted.kind !== 'public') return { ...unsent(vetted), phases: watch.phases() };
    watch.ended('dnsMs');
    return sentFrom(await postPinned({ ...post, pins: vetted.pins }, watch, signal), watch.phases());
  };
}

type Unsent =
  | Readonly<{ kind: 'failed'; code: FailureCode; detail: string }>
  | Readonly<{ kind: 'refused'; reason: RefusalReason; detail: string }>;

function unsent(vetted: Exclude<Vetted, { kind: 'public' }>): Unsent {
  switch (vetted.kind) {
    case 'not-public':
      return { kind: 'refused', reason: 'blocked_address', detail: vetted.addresses.join(', ') };
    case 'no-address':
      return { kind: 'failed', code: 'dns_error', detail: 'the name has no address' };
    case 'unresolved':
      return { kind: 'failed', code: 'dns_error', detail: vetted.code };
    case 'timed-out':
      return { kind: 'failed', code: 'dns_timeout', detail: 'no answer from DNS' };
    default:
      return unreachable(vetted);
  }
}

function sentFrom(posted: Posted, phases: Phases): Sent {
  if (posted.kind !== 'strayed') return { ...posted, phases };
  const detail = `connected to ${posted.remoteAddress}, which was not vetted`;
  return { kind: 'refused', reason: 'blocked_address', detail, phases };
}
