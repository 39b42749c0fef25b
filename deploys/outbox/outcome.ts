/**
 * How long each part of an attempt took, in milliseconds, from the end of the part before it; absent when it was never
 * finished. `dnsMs` ends with a vetted address, `connectMs` with TCP, `tlsMs` with a verified peer, `firstByteMs` with the
 * status line. `totalMs` is the whole attempt.
 */
export type Phases = Readonly<
  Partial<Record<'dnsMs' | 'connectMs' | 'tlsMs' | 'firstByteMs', number>> & { totalMs: number }
>;

/** How a body ended: all of it is kept, it was longer than what is kept, or it broke off or was too slow. */
export type BodyKind = 'whole' | 'cut' | 'incomplete';

/** The error of an attempt without a response, as customers read it. None names an address: that would reveal private networks. */
export const SEND_TEXTS = {
  timeout: 'No response within 10 seconds',
  dns_error: 'Host name could not be resolved',
  dns_timeout: 'Host name could not be resolved within 3 seconds',
  connection_refused: 'Connection refused',
  connection_reset: 'Connection closed before a response arrived',
  unreachable: 'Host unreachable',
  tls_error: 'TLS connection failed: check the certificate; TLS 1.2 or later is required',
  tls_timeout: 'TLS handshake timed out',
  bad_response: 'Response is not valid HTTP',
  aborted: 'Attempt aborted because the service is stopping',
  internal_error: 'Request could not be sent because of an internal error',
  blocked_url: 'URL is no longer allowed',
  blocked_address: 'Host resolves to a non-public address',
} as const;

export type FailureCode = keyof typeof SEND_TEXTS;

/** Of those, that nothing may be sent there: the URL breaks a rule, or one of the host's addresses is not public. */
const BLOCKED: ReadonlySet<FailureCode> = new Set(['blocked_url', 'blocked_address']);

export type Sent = AttemptEnd & Readonly<{ phases: Phases }>;

/**
 * `answered` is any final status. `fields` are the answer's headers in their order and spelling; `body` holds at most
 * 16 KiB. `detail` is for operators and may name addresses; it holds nothing of the request's headers or body.
 */
export type AttemptEnd =
  | Readonly<{
      kind: 'answered';
      status: number;
      fields: readonly (readonly [name: string, value: string])[];
      body: Uint8Array;
      bodyKind: BodyKind;
      remoteAddress: string;
    }>
  | Readonly<{ kind: 'failed'; code: FailureCode; detail: string }>;

/** The consequence of an attempt for its delivery; `interrupted`: its response is unknown. `error` is a code such as `http_404` or `timeout`. */
export type Verdict =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed' | 'blocked'; readonly error: string }
  | { readonly kind: 'interrupted' };

/** Any 2xx is success, whatever became of the answer's body (docs/spec.md 4.3). A redirect is a status like any other. */
export function verdictOf(sent: Sent): Verdict {
  if (sent.kind === 'failed') {
    if (sent.code === 'aborted') return { kind: 'interrupted' };
    return { kind: BLOCKED.has(sent.code) ? 'blocked' : 'failed', error: sent.code };
  }
  if (sent.status >= 200 && sent.status <= 299) return { kind: 'succeeded' };
  return { kind: 'failed', error: `http_${sent.status}` };
}
