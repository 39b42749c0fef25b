import type { Phases } from './phases.ts';

/** What is sent in one attempt. `headers` are those of the event; the sender adds the ones of the connection. */
export type Post = Readonly<{ url: URL; headers: Readonly<Record<string, string>>; body: Uint8Array }>;

/**
 * One POST to a receiver, at most 13 s long: 3 s to find its addresses and 10 s for the rest. Never rejects. It ends
 * at once when `signal` aborts, as `aborted`.
 */
export type Send = (post: Post, signal: AbortSignal) => Promise<Sent>;

/**
 * Why there is no status line. `timeout`: none within 10 s. `bad_response`: not HTTP. `unreachable`: no route, or no
 * TCP connection within its time. `aborted`: given up by the caller, which says nothing about the receiver.
 */
export type FailureCode =
  | 'timeout'
  | 'dns_error'
  | 'dns_timeout'
  | 'connection_refused'
  | 'connection_reset'
  | 'unreachable'
  | 'tls_error'
  | 'tls_timeout'
  | 'bad_response'
  | 'aborted';

/** Why nothing was sent, not even a packet: the URL breaks a rule, or one of the host's addresses is not public. */
export type RefusalReason = 'blocked_url' | 'blocked_address';

/** How a body ended: all of it is kept, it was longer than what is kept, or it broke off or was too slow. */
export type BodyKind = 'whole' | 'cut' | 'incomplete';

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
