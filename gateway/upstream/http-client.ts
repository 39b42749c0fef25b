import type { Clock } from '../../shared/clock.ts';
import type { Coding } from '../../shared/config/kinds.ts';
import { descriptorsInUse } from '../../shared/store/private.ts';
import type { MethodClass } from '../../shared/config/methods.ts';
import { userinfoOf } from '../../shared/secret.ts';
import { LEFT_OUT } from '../http/stream-body.ts';
import {
  type AccountCall,
  Connection,
  type ConnectionOwner,
  type ExchangeHandler,
  type HttpReply,
  isGivenUp,
  NO_DESCRIPTORS,
  type NoReply,
  type Surrender,
} from './http-connection.ts';

type Unsent = Extract<NoReply, { kind: 'unsent' }>;
type Unanswered = Parameters<typeof isGivenUp>[0];

const CONNECT_MS = 3_000;

/** Opens a connection, TLS verified, or says within `waitMs` why not; a late one is closed. Never rejects. */
function connect(url: URL, owner: ConnectionOwner, signal: AbortSignal, waitMs: number) {
  const tls = url.protocol === 'https:';
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const { promise, resolve } = Promise.withResolvers<Connection | Unsent>();
  const done = new AbortController();
  const over = done.signal;
  let opened: Socket | undefined;
  const settle = (outcome: Connection | Unsent) => {
    done.abort();
    resolve(outcome);
  };
  const refuse = (reason: string) => {
    if (over.aborted) return;
    settle({ kind: 'unsent', reason: descriptorsInUse() === undefined ? NO_DESCRIPTORS : reason });
  };
  const giveUp = () => {
    if (over.aborted) return;
    const missing = opened === undefined ? 'accept a connection' : 'shake hands';
    refuse(`it did not ${missing} in time`);
    opened?.terminate();
  };
  const ready = (socket: Socket) => settle((socket.data = new Connection(socket, tls, owner)));
  Bun.connect<Connection | undefined>({
    hostname,
    port: Number(url.port || (tls ? 443 : 80)),
    tls: tls ? { serverName: hostname, rejectUnauthorized: true } : false,
    data: undefined,
    socket: {
      open(socket) {
        if (over.aborted) return socket.terminate();
        opened = socket;
        socket.setNoDelay(true);
        if (!tls) ready(socket);
      },
      handshake(socket, success, error) {
        if (over.aborted) return;
        if (success && error === null) return ready(socket);
        refuse(error?.message ?? 'the TLS handshake failed');
        socket.terminate();
      },
      data: (socket, bytes) => socket.data?.onData(bytes),
      drain: (socket) => socket.data?.onDrain(),
      // Half a close is a whole one here: a backend that will send no more is of no use.
      end(socket) {
        socket.data?.onEnd();
        socket.end();
      },
      close(socket) {
        refuse('it closed the connection at once');
        socket.data?.onClose();
      },
    },
  }).catch((error: unknown) =>
    refuse(error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  );
  void owner.clock.sleep(waitMs, over).then(giveUp);
  if (signal.aborted) giveUp();
  else signal.addEventListener('abort', giveUp, { once: true, signal: over });
  return promise;
}

type Socket = Bun.Socket<Connection | undefined>;

type HttpRequest = Readonly<{
  body: Uint8Array;
  dueMs: number;
  /** A `write` does not go over a connection that may just be closing, because it must not be sent twice. */
  kind: MethodClass;
  hasOther?(): boolean;
  /** Absent: a call of our own. */
  accountId?: number;
  /** The node leaves out the BigTable behind it. */
  localOnly?: boolean;
  /** It goes over no kept connection: one has closed under it. */
  isNew?: boolean;
}>;

/** Agave's switch for one request (`rpc_service.rs`). */
const NO_BIGTABLE = 'x-bigtable: disabled\r\n';

type ClientOptions = Readonly<{
  url: URL;
  /** The codings that its answers may have; none: they come as they are. */
  codings: readonly Coding[];
  headers: ReadonlyMap<string, string>;
  clock: Clock;
  /** A body whose backend is silent for this long is cut. */
  idleMs: number;
}>;

/** Agave closes idle connections after 20 s; ours go first, so that a request does not meet a closing one. */
const KEEP_MS = 15_000;
/** A connection used this recently is taken to be alive for a request that must not be sent twice. */
const FRESH_MS = 1_000;

/** Keep-alive connections to one backend (docs/decisions/http-client.md). */
export type HttpClient = Readonly<ReturnType<typeof createHttpClient>>;

export function createHttpClient({ url, codings, headers, clock, idleMs }: ClientOptions) {
  /** A request's head up to the value of Content-Length. */
  const head = Buffer.from(headOf(url, codings, headers), 'latin1');
  const idle: Connection[] = [];
  const connections = new Set<Connection>();
  /** The calls whose connection is not open yet, by what gives them up. */
  const connecting = new Map<AbortController, Unanswered>();
  let isClosed = false;
  const owner: ConnectionOwner = {
    clock,
    onIdle: (connection) => void idle.push(connection),
    onClose(connection) {
      connections.delete(connection);
      const at = idle.indexOf(connection);
      if (at !== -1) idle.splice(at, 1);
    },
  };

  /** Sends `length` bytes of `message`, which begins with `head` and may be overwritten afterwards, now, at `nowMs`. */
  function start(
    message: Buffer,
    length: number,
    nowMs: number,
    dueAtMs: number,
    handler: ExchangeHandler,
  ): void {
    const reused = idle.pop();
    if (reused !== undefined) return reused.exchange(message, length, handler, nowMs, dueAtMs);
    const kept = Buffer.from(message.subarray(0, length));
    void open(handler, dueAtMs - nowMs).then((opened) => {
      if (opened instanceof Connection) opened.exchange(kept, length, handler, clock.monotonic(), dueAtMs);
      else handler.onOutcome(opened);
    });
  }

  /** Resolves when a body has begun, or by `dueMs`. Until then `signal` ends the exchange, later its reader. Never rejects. */
  async function send(request: HttpRequest, signal: AbortSignal): Promise<HttpReply | NoReply> {
    const { body, dueMs, localOnly = false, isNew = false, ...traits } = request;
    const fresh = traits.kind === 'write';
    const dueAtMs = clock.monotonic() + dueMs;
    const endOfHead = `${body.length}\r\n${localOnly ? NO_BIGTABLE : ''}\r\n`;
    const message = Buffer.concat([head, Buffer.from(endOfHead), body]);
    const isAlive = clock.monotonic() - (idle.at(-1)?.activeAtMs ?? -Infinity) <= FRESH_MS;
    const reused = isNew || (fresh && !isAlive) ? undefined : idle.pop();
    if (reused !== undefined) {
      const outcome = await exchange(reused);
      // The backend closed it while it was idle, before it read a byte of ours: not a failure of the backend.
      const isAgain = outcome.kind === 'no-answer' && (fresh ? outcome.unwritten : outcome.stale);
      if (isAgain !== true || signal.aborted) return outcome;
    }
    const opened = await open(traits, dueMs, signal);
    return opened instanceof Connection ? exchange(opened) : opened;

    async function exchange(connection: Connection): Promise<HttpReply | NoReply> {
      const abort = () => connection.destroy('cancelled');
      signal.addEventListener('abort', abort, { once: true });
      const outcome = await new Promise<HttpReply | NoReply>((onOutcome) =>
        connection.exchange(message, message.length, { ...traits, onOutcome }, clock.monotonic(), dueAtMs),
      );
      signal.removeEventListener('abort', abort); // from here on the body's reader cancels it
      return outcome;
    }
  }

  async function open(call: Unanswered, waitMs: number, signal?: AbortSignal): Promise<Connection | Unsent> {
    const over = new AbortController();
    connecting.set(over, call);
    const ended = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
    const opened = await connect(url, owner, ended, Math.min(CONNECT_MS, waitMs));
    connecting.delete(over);
    if (opened instanceof Connection) {
      connections.add(opened);
      if (!ended.aborted && !isClosed) return opened;
      opened.destroy('cancelled');
    } else if (!over.signal.aborted) return opened;
    const reason = signal?.aborted ? 'the caller left' : isClosed ? 'the client is closed' : LEFT_OUT;
    return { kind: 'unsent', reason };
  }

  function calls(): readonly AccountCall[] {
    return [...connections].flatMap(({ call }) => call ?? []);
  }

  /** Cuts what is overdue or silent and closes what is idle; called a few times a second. */
  function tick(): void {
    const nowMs = clock.monotonic();
    for (const connection of connections) connection.onTick(nowMs, idleMs);
    for (const connection of idle.filter(({ activeAtMs }) => nowMs - activeAtMs >= KEEP_MS))
      connection.destroy('cancelled');
  }

  /** Lets calls without a reply go elsewhere; those sent before `beforeMs`, where it is given. */
  function abandon(what: Surrender, beforeMs = Infinity): void {
    for (const connection of connections) connection.abandon(what, beforeMs);
    // Of a scan that was not sent nothing is computed.
    const unsent = what === 'hung' ? 'all' : what;
    if (what !== 'lost') for (const [over, call] of connecting) if (isGivenUp(call, unsent)) over.abort();
  }

  function close(): void {
    isClosed = true;
    for (const connection of connections) connection.destroy('cancelled');
  }

  return { send, start, head, calls, tick, abandon, close };
}

/** The request's head up to what changes from request to request. */
function headOf(url: URL, codings: readonly Coding[], headers: ReadonlyMap<string, string>): string {
  const lines = [
    `POST ${url.pathname}${url.search} HTTP/1.1`,
    `host: ${url.host}`,
    'content-type: application/json',
  ];
  const { username, password } = userinfoOf(url) ?? url;
  if (username !== '' && !headers.has('authorization'))
    lines.push(`authorization: Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`);
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  lines.push(`accept-encoding: ${codings.join(', ') || 'identity'}`, 'content-length: ');
  return lines.join('\r\n');
}
