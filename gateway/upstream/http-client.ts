import type { Clock } from '../../shared/clock.ts';
import {
  Connection,
  type ConnectionEvents,
  type ExchangeHandler,
  type HttpReply,
  type NoReply,
} from './http-connection.ts';

/** Where connections go. */
type Target = Readonly<{ hostname: string; port: number; tls: boolean }>;

type Unsent = Extract<NoReply, { kind: 'unsent' }>;
type Connected = { readonly kind: 'connected'; readonly connection: Connection } | Unsent;

/** The target of an http or https address. */
function targetOf(url: URL): Target {
  const tls = url.protocol === 'https:';
  const port = url.port === '' ? (tls ? 443 : 80) : Number(url.port);
  return { hostname: url.hostname.replace(/^\[|\]$/g, ''), port, tls };
}

/**
 * Opens a connection, TLS verified, or says why not within `timeoutMs`, or when `signal` aborts. Never rejects; what is
 * open by then, with its handshake under way, is closed, and so is what opens later.
 */
async function connect(
  { hostname, port, tls }: Target,
  events: ConnectionEvents,
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Connected> {
  const { promise, resolve } = Promise.withResolvers<Connected>();
  const done = new AbortController();
  const refuse = (reason: string) => resolve({ kind: 'unsent', reason });
  let late = false;
  let opened: Bun.Socket<Data> | undefined;
  const giveUp = () => {
    late = true;
    refuse(
      opened === undefined ? 'it did not accept a connection in time' : 'it did not shake hands in time',
    );
    opened?.terminate();
  };
  const ready = (socket: Bun.Socket<Data>) => {
    socket.data.connection = new Connection(socket, tls, events, clock);
    resolve({ kind: 'connected', connection: socket.data.connection });
  };
  Bun.connect<Data>({
    hostname,
    port,
    tls: tls ? { serverName: hostname, rejectUnauthorized: true } : false,
    data: { connection: undefined },
    socket: {
      open(socket) {
        if (late) return socket.terminate();
        opened = socket;
        socket.setNoDelay(true);
        if (!tls) ready(socket);
      },
      handshake(socket, success, error) {
        if (late) return;
        if (success && error === null) return ready(socket);
        refuse(error?.message ?? 'the TLS handshake failed');
        socket.terminate();
      },
      data: (socket, bytes) => socket.data.connection?.onData(bytes),
      drain: (socket) => socket.data.connection?.onDrain(),
      // Half a close is a whole one here: a backend that will send no more is of no use.
      end(socket) {
        socket.data.connection?.onEnd();
        socket.end();
      },
      close: (socket) => {
        refuse('it closed the connection at once');
        socket.data.connection?.onClose();
      },
      connectError: (_socket, error) => refuse(codeOf(error)),
    },
  }).catch((error: unknown) => refuse(codeOf(error)));
  void clock.sleep(timeoutMs, done.signal).then(() => {
    if (!done.signal.aborted) giveUp();
  });
  if (signal.aborted) giveUp();
  else signal.addEventListener('abort', giveUp, { once: true });
  const outcome = await promise;
  done.abort();
  signal.removeEventListener('abort', giveUp);
  return outcome;
}

type Data = { connection: Connection | undefined };

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

/** One POST. `fresh`: not over a connection that may just be closing, because it must not be sent twice. */
type HttpRequest = Readonly<{
  body: Uint8Array;
  acceptEncoding: string;
  dueMs: number;
  fresh: boolean;
  /** A header for this request alone. */
  extra?: readonly [name: string, value: string] | undefined;
}>;

/** Keep-alive connections to one backend. */
export type HttpClient = Readonly<{
  /**
   * Resolves when a body has begun or ended, or fails when it has not by `dueMs`. Aborting `signal` ends the exchange up
   * to then, also while it connects; after that the body's reader cancels it. Never rejects.
   */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply | NoReply>;
  /**
   * The same without a promise: sends the first `length` bytes of `message`, which begins with a head of `headFor`, and
   * gives the outcome to the handler. The message may be overwritten afterwards.
   */
  start(message: Buffer, length: number, dueMs: number, handler: ExchangeHandler): void;
  /** A request's head up to the value of Content-Length. */
  headFor(acceptEncoding: string): Buffer;
  /** Cuts what is overdue or silent and closes what is idle; called a few times a second. */
  tick(): void;
  /** Closes every connection. */
  close(): void;
}>;

type ClientOptions = Readonly<{
  url: URL;
  headers: ReadonlyMap<string, string>;
  clock: Clock;
  /** A body whose backend is silent for this long is cut. */
  idleMs: number;
}>;

const CONNECT_MS = 3_000;
/** Agave closes idle connections after 20 s; ours go first, so that a request does not meet a closing one. */
const KEEP_MS = 15_000;
/** Combinations of the known content codings. */
const HEADS_MAX = 64;
const NEVER = new AbortController().signal;
/** A connection used this recently is taken to be alive for a request that must not be sent twice. */
const FRESH_MS = 1_000;

export function createHttpClient({ url, headers, clock, idleMs }: ClientOptions): HttpClient {
  const target = targetOf(url);
  const prefix = prefixOf(url, headers);
  const idle: Connection[] = [];
  const connections = new Set<Connection>();
  const heads = new Map<string, Buffer>();
  let isClosed = false;
  const events: ConnectionEvents = {
    onIdle: (connection) => void idle.push(connection),
    onClose(connection) {
      connections.delete(connection);
      const at = idle.indexOf(connection);
      if (at !== -1) idle.splice(at, 1);
    },
  };

  function headFor(acceptEncoding: string): Buffer {
    const known = heads.get(acceptEncoding);
    if (known !== undefined) return known;
    const head = Buffer.from(`${prefix}accept-encoding: ${acceptEncoding}\r\ncontent-length: `, 'latin1');
    if (heads.size < HEADS_MAX) heads.set(acceptEncoding, head);
    return head;
  }

  function start(message: Buffer, length: number, dueMs: number, handler: ExchangeHandler): void {
    const reused = idle.pop();
    const dueAtMs = clock.monotonic() + dueMs;
    if (reused !== undefined) return reused.exchange(message, length, handler, dueAtMs);
    const kept = Buffer.from(message.subarray(0, length));
    void open(NEVER).then((opened) => {
      if (opened.kind === 'unsent') handler.onOutcome(opened);
      else opened.connection.exchange(kept, length, handler, dueAtMs);
    });
  }

  async function send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply | NoReply> {
    const message = messageOf(prefix, request);
    const reused = takeIdle(request.fresh);
    if (reused !== undefined) {
      const outcome = await exchange(reused, message, request.dueMs, signal);
      // The backend closed it while it was idle, before it read a byte of ours: not a failure of the backend.
      if (outcome.kind !== 'no-answer' || !outcome.stale || request.fresh || signal.aborted) return outcome;
    }
    const opened = await open(signal);
    return opened.kind === 'unsent' ? opened : exchange(opened.connection, message, request.dueMs, signal);
  }

  async function open(signal: AbortSignal): Promise<Connected> {
    const connected = await connect(target, events, clock, CONNECT_MS, signal);
    if (connected.kind === 'unsent') return connected;
    connections.add(connected.connection);
    if (!signal.aborted && !isClosed) return connected;
    connected.connection.destroy('cancelled');
    return { kind: 'unsent', reason: signal.aborted ? 'the caller left' : 'the client is closed' };
  }

  async function exchange(connection: Connection, message: Buffer, dueMs: number, signal: AbortSignal) {
    const abort = () => connection.destroy('cancelled');
    const { promise, resolve } = Promise.withResolvers<HttpReply | NoReply>();
    signal.addEventListener('abort', abort, { once: true });
    connection.exchange(message, message.length, { onOutcome: resolve }, clock.monotonic() + dueMs);
    const outcome = await promise;
    signal.removeEventListener('abort', abort); // from here on the body's reader cancels it
    return outcome;
  }

  function takeIdle(fresh: boolean): Connection | undefined {
    const last = idle.at(-1);
    if (last === undefined || (fresh && clock.monotonic() - last.activeAtMs > FRESH_MS)) return undefined;
    return idle.pop();
  }

  function tick(): void {
    const nowMs = clock.monotonic();
    for (const connection of connections) connection.onTick(nowMs, idleMs);
    for (const connection of idle.filter(({ activeAtMs }) => nowMs - activeAtMs >= KEEP_MS)) {
      connection.destroy('cancelled');
    }
  }

  return {
    send,
    start,
    headFor,
    tick,
    close: () => {
      isClosed = true;
      for (const connection of connections) connection.destroy('cancelled');
    },
  };
}

/** The request's head up to what changes from request to request. */
function prefixOf(url: URL, headers: ReadonlyMap<string, string>): string {
  const lines = [
    `POST ${url.pathname}${url.search} HTTP/1.1`,
    `host: ${url.host}`,
    'content-type: application/json',
  ];
  if (url.username !== '' && !headers.has('authorization')) {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    lines.push(`authorization: Basic ${Buffer.from(pair).toString('base64')}`);
  }
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  return `${lines.join('\r\n')}\r\n`;
}

function messageOf(prefix: string, { body, acceptEncoding, extra }: HttpRequest): Buffer {
  const line = extra === undefined ? '' : `${extra[0]}: ${extra[1]}\r\n`;
  const head = `${prefix}${line}accept-encoding: ${acceptEncoding}\r\ncontent-length: ${body.length}\r\n\r\n`;
  const message = Buffer.allocUnsafe(head.length + body.length);
  message.write(head, 0, 'latin1');
  message.set(body, head.length);
  return message;
}
