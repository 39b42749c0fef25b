import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { LookupFunction, TcpSocketConnectOpts } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import manifest from '../../package.json' with { type: 'json' };
import type { Clock } from '../../shared/clock.ts';
import type { AttemptEnd, BodyKind, FailureCode, Phases } from '../outbox/outcome.ts';
import { codeOf } from '../health/outbound.ts';
import { canonicalIp, literalOf, type Pin, portOf } from './policy.ts';

/** One request. `headers` may replace `content-type` and `user-agent`, but none of the connection. */
export type Post = Readonly<{ url: URL; headers: Readonly<Record<string, string>>; body: Uint8Array }>;

/** `pins` are the only addresses that are ever connected to. */
type PinnedPost = Post & Readonly<{ pins: readonly [Pin, ...Pin[]] }>;

const ATTEMPT_MS = 10_000;
const CONNECT_MS = 4_000;
/** Bytes of an answer's head beyond which llhttp gives up, and of its fields that are kept. */
const [HEAD_BYTES_MAX, FIELDS_LENGTH_MAX] = [65_536, 16_384];

/** Interim answers (1xx) that are read before the answer: some milliseconds of parsing. */
const INTERIM_MAX = 1_000;
/** Least time for one address before the next is tried. */
const ADDRESS_MS_MIN = 250;

/**
 * POSTs over HTTP/1.1 and TLS 1.2 or later, each on its own connection (docs/decisions/webhooks-without-fetch.md). Never
 * rejects; at most 10 s. `ca` is the policy's.
 */
export function createPost(ca: string | undefined, clock: Clock) {
  // An agent of its own knows no proxies of the environment; a new connection per attempt is never another's pin.
  const agent = new Agent({ keepAlive: false, maxCachedSessions: 0 });
  const trust = ca === undefined ? {} : { ca };
  return async (post: PinnedPost, watch: Stopwatch, signal: AbortSignal): Promise<AttemptEnd> => {
    const over = new AbortController();
    try {
      const request = httpsRequest({ ...optionsFor(post), ...trust, agent });
      over.signal.addEventListener('abort', () => request.destroy(), { once: true });
      const outcome = outcomeOf(request, post, { clock, watch, signal, over });
      request.end(post.body);
      return await outcome;
    } catch (error) {
      const detail = error instanceof Error ? error.name : 'unknown';
      return { kind: 'failed', code: 'internal_error', detail };
    } finally {
      over.abort();
    }
  };
}

type AttemptTimes = Readonly<{ clock: Clock; watch: Stopwatch; signal: AbortSignal; over: AbortController }>;

/** The first thing that decides the attempt; the caller then aborts `over`, which closes the connection. */
function outcomeOf(
  request: ClientRequest,
  { pins }: PinnedPost,
  { clock, watch, signal, over }: AttemptTimes,
): Promise<AttemptEnd> {
  const { promise, resolve } = Promise.withResolvers<AttemptEnd>();
  let response: IncomingMessage | undefined;
  /** After the status line, which decides, only the body can fail. */
  const fail = (code: FailureCode, detail: string) => {
    if (response === undefined) resolve({ kind: 'failed', code, detail });
    else over.abort();
  };

  request.on('socket', (socket) => {
    socket.once('connect', () => {
      watch.ended('connectMs');
      const { remoteAddress } = socket;
      if (remoteAddress === undefined) return fail('connection_reset', 'closed right after it was opened');
      const peer = canonicalIp(remoteAddress);
      if (pins.some(({ address }) => canonicalIp(address) === peer)) return;
      fail('blocked_address', `connected to ${remoteAddress}, which was not vetted`);
      over.abort(); // in this turn, before the handshake
    });
    socket.once('secureConnect', () => watch.ended('tlsMs'));
  });
  request.on('response', (arrived) => {
    const { statusCode = 0, rawHeaders, socket } = arrived;
    if (statusCode < 200) return fail('bad_response', 'invalid status code');
    watch.ended('firstByteMs');
    response = arrived;
    const head = {
      status: statusCode,
      fields: pairsOf(rawHeaders),
      remoteAddress: socket.remoteAddress ?? '',
    };
    void collectBody(arrived, over.signal).then((body) => resolve({ kind: 'answered', ...head, ...body }));
  });
  let interim = 0;
  request.on('information', () => {
    // A flood of them would keep the parser busy until the timeout, so the rest is left unread. Not paused at once,
    // because the client resumes after the chunk that it is parsing.
    if (++interim === INTERIM_MAX) setImmediate(() => response ?? request.socket?.pause());
  });
  request.on('error', (error) => {
    const { code, detail } = failureFrom(error, watch.current());
    if (response === undefined) fail(code, detail);
  });
  request.on('close', () => {
    if (response === undefined) fail('bad_response', 'connection closed without a response');
  });
  void clock
    .sleep(CONNECT_MS, over.signal)
    .then(() => watch.current() === 'connectMs' && fail('unreachable', 'no connection in time'));
  void clock.sleep(ATTEMPT_MS, over.signal).then(() => {
    if (watch.current() === 'tlsMs') fail('tls_timeout', 'no TLS handshake within 10 s');
    else fail('timeout', 'no response within 10 s');
  });
  const stop = () => fail('aborted', 'the service is stopping');
  signal.addEventListener('abort', stop, { once: true, signal: over.signal });
  if (signal.aborted) stop();
  return promise;
}

/** `node:https` hands the options of the socket on. */
type SocketOptions = RequestOptions &
  Pick<TcpSocketConnectOpts, 'autoSelectFamily' | 'autoSelectFamilyAttemptTimeout'> &
  Pick<ConnectionOptions, 'ALPNProtocols'>;

function optionsFor({ url, headers, body, pins }: PinnedPost): SocketOptions {
  const literal = literalOf(url);
  // Called for names only: an address in the URL is connected to as it is.
  const lookup: LookupFunction = (_host, { all }, give) =>
    all === true ? give(null, [...pins]) : give(null, pins[0].address, pins[0].family);
  return {
    method: 'POST',
    host: literal ?? url.hostname,
    port: portOf(url),
    path: url.pathname + url.search,
    lookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: Math.max(ADDRESS_MS_MIN, Math.floor(CONNECT_MS / pins.length)),
    // Otherwise the name would be taken from the Host header; an address is verified as host.
    servername: literal === undefined ? url.hostname : '',
    // Set, so that no environment variable decides.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    maxHeaderSize: HEAD_BYTES_MAX,
    insecureHTTPParser: false,
    headers: {
      'content-type': 'application/json',
      'user-agent': `Sluice-Webhooks/${manifest.version}`,
      ...headers,
      host: url.host,
      'content-length': body.byteLength,
      'accept-encoding': 'identity',
      connection: 'close',
    },
  };
}

/** The first fields of a head; each is written down with its attempt. */
function pairsOf(raw: readonly string[]): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [];
  let length = 0;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = raw.slice(i, i + 2);
    length += name.length + value.length;
    if (length > FIELDS_LENGTH_MAX) break;
    pairs.push([name, value]);
  }
  return pairs;
}

/** The parts of an attempt that end by themselves, in their order. */
const PHASES = ['dnsMs', 'connectMs', 'tlsMs', 'firstByteMs'] as const;
type Phase = (typeof PHASES)[number];

export function createStopwatch(clock: Pick<Clock, 'monotonic'>) {
  const startMs = clock.monotonic();
  const took: Partial<Record<Phase, number>> = {};
  let lastMs = startMs;
  return {
    ended(phase: Phase): void {
      const nowMs = clock.monotonic();
      took[phase] = nowMs - lastMs;
      lastMs = nowMs;
    },
    /** The first phase that has not ended; `undefined` after the status line. */
    current: (): Phase | undefined => PHASES.find((phase) => took[phase] === undefined),
    phases: (): Phases => ({ ...took, totalMs: clock.monotonic() - startMs }),
  };
}

export type Stopwatch = ReturnType<typeof createStopwatch>;

/** Bytes of an answer's body that are kept. */
const BODY_BYTES_MAX = 16_384;

/** The beginning of an answer's body, undecoded, until it ends, is longer than is kept, or `over` aborts. Never rejects. */
function collectBody(response: IncomingMessage, over: AbortSignal) {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  return new Promise<Readonly<{ body: Uint8Array; bodyKind: BodyKind }>>((resolve) => {
    const end = (bodyKind: BodyKind) => resolve({ body: Uint8Array.from(Buffer.concat(kept)), bodyKind });
    response.on('data', (piece: Uint8Array) => {
      const room = BODY_BYTES_MAX - bytes;
      if (room > 0) kept.push(piece.subarray(0, room));
      bytes += piece.length;
      if (bytes <= BODY_BYTES_MAX) return;
      response.pause();
      end('cut');
    });
    response.on('end', () => end(response.complete ? 'whole' : 'incomplete'));
    response.on('error', () => end('incomplete'));
    response.on('close', () => end('incomplete'));
    over.addEventListener('abort', () => end('incomplete'), { once: true });
  });
}

/** Codes of verification and of BoringSSL in words. */
const TLS_DETAILS: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another name',
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate is from an authority that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate is from an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT: 'the certificate is from an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is from an authority that is not trusted',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the port does not speak TLS',
  ERR_SSL_HTTP_REQUEST: 'the port does not speak TLS',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'the receiver does not support TLS 1.2 or later',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'the receiver does not support TLS 1.2 or later',
};

/** A connection that the other side closed or broke. */
const BROKEN: ReadonlySet<string> = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ERR_SOCKET_CLOSED']);

/** Why a connection failed, from the error that ended it and the phase it was in. */
function failureFrom(error: unknown, phase: Phase | undefined): { code: FailureCode; detail: string } {
  const code = codeOf(error, 'no code');
  if (phase === 'connectMs')
    return { code: code === 'ECONNREFUSED' ? 'connection_refused' : 'unreachable', detail: code };
  if (BROKEN.has(code)) return { code: 'connection_reset', detail: code };
  if (phase === 'tlsMs' || code.startsWith('ERR_SSL'))
    return { code: 'tls_error', detail: TLS_DETAILS[code] ?? code };
  return { code: 'bad_response', detail: code };
}
