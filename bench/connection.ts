import { BodyDecoder } from '../gateway/http/body-decoder.ts';
import { readHead, type ResponseHead } from '../gateway/http/response-head.ts';
import type { Clock } from '../shared/clock.ts';
import { userinfoOf } from '../shared/secret.ts';

/** What came of one request. Bodies above `WHOLE_BYTES_MAX` are not kept: `body` is then their first bytes. */
export type Reply =
  | Readonly<{
      kind: 'reply';
      status: number;
      /** Seconds of Retry-After; absent: there was none, or none that can be read. */
      retryAfter: number | undefined;
      bytes: number;
      body: Buffer;
      isWhole: boolean;
    }>
  | Readonly<{ kind: 'failure'; reason: string }>;

/** Where requests go, and the head of each up to the value of Content-Length. */
type Target = Readonly<{ url: URL; head: string }>;

const WHOLE_BYTES_MAX = 262_144;
const FIRST_BYTES = 1_024;
const CONNECT_MS = 5_000;
const EMPTY = Buffer.alloc(0);

/** An endpoint and its key, as they are given. */
export type Endpoint = Readonly<{ url: URL; key: string | undefined; keyAs: string }>;

/** A refusal holds calls back for at most so many seconds, whatever its Retry-After says. */
export const RETRY_AFTER_MAX = 300;

/** Seconds from now that a refusal says, as a number or as a date (RFC 9110 10.2.3). */
export function retryAfterOf(
  status: number,
  text: string | null | undefined,
  nowMs: number,
): number | undefined {
  if ((status !== 429 && status !== 503) || !/^\d{1,9}$|GMT$/.test(text ?? '')) return undefined;
  const seconds = /^\d/.test(text ?? '') ? Number(text) : (Date.parse(text ?? '') - nowMs) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(0, seconds), RETRY_AFTER_MAX);
}

/** The headers of every call: the key stands in `keyAs`, unless it is in the URL, as its user or elsewhere. */
export function headersOf({ url, key, keyAs }: Endpoint): Readonly<Record<string, string>> {
  const json = { 'content-type': 'application/json', accept: 'application/json' };
  const { username, password } = userinfoOf(url) ?? url;
  if (key === undefined && username === '') return json;
  if (key === undefined)
    return { ...json, authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
  const isBearer = keyAs.toLowerCase() === 'authorization';
  return { ...json, [keyAs]: isBearer ? `Bearer ${key}` : key };
}

export function targetOf(endpoint: Endpoint): Target {
  const { url } = endpoint;
  const lines = Object.entries({ host: url.host, ...headersOf(endpoint), 'accept-encoding': 'identity' });
  const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return { url, head: `POST ${url.pathname}${url.search} HTTP/1.1\r\n${text}content-length: ` };
}

/** A URL as it may be printed: keys stand in paths, queries and user names. */
export function shownUrl({ origin, pathname, search }: URL): string {
  return `${origin}${pathname === '/' ? '' : '/…'}${search === '' ? '' : '?…'}`;
}

type Exchange = {
  readonly onReply: (reply: Reply) => void;
  readonly dueMs: number;
  head: Buffer;
  response: ResponseHead | undefined;
  retryAfter: number | undefined;
  decoder: BodyDecoder | undefined;
  pieces: Buffer[];
  bytes: number;
};

/**
 * One HTTP/1.1 connection of a caller, with a request at a time. It is made with the first request and again after it was
 * closed. A class: it has an identity and changes with every byte.
 */
export class CallerConnection {
  readonly #target: Target;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #socket: Bun.Socket<undefined> | undefined;
  #exchange: Exchange | undefined;
  /** What the socket has not taken of the request yet. */
  #unwritten = EMPTY;
  /** An attempt to connect, by its number: one that is over does nothing. */
  #attempt = 0;

  constructor(target: Target, clock: Clock, timeoutMs: number) {
    this.#target = target;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Sends a body; `onReply` is called once, never at once. */
  send(body: string, onReply: (reply: Reply) => void): void {
    const dueMs = this.#clock.monotonic() + this.#timeoutMs;
    this.#exchange = {
      onReply,
      dueMs,
      head: EMPTY,
      response: undefined,
      retryAfter: undefined,
      decoder: undefined,
      pieces: [],
      bytes: 0,
    };
    this.#unwritten = Buffer.from(`${this.#target.head}${Buffer.byteLength(body)}\r\n\r\n${body}`);
    if (this.#socket === undefined) this.#connect();
    else this.#write(this.#socket);
  }

  /** Fails a request that is overdue; called a few times a second. */
  tick(): void {
    const { dueMs = Infinity } = this.#exchange ?? {};
    if (this.#clock.monotonic() >= dueMs) this.close('no answer in time');
  }

  /** Ends the connection; a request under way fails for `reason`. */
  close(reason = 'closed'): void {
    this.#attempt++;
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.terminate();
    this.#settle({ kind: 'failure', reason });
  }

  #connect(): void {
    const { url } = this.#target;
    const attempt = ++this.#attempt;
    const tls = url.protocol === 'https:';
    const hostname = url.hostname.replace(/^\[|\]$/g, '');
    const isOver = () => attempt !== this.#attempt;
    const ready = (socket: Bun.Socket<undefined>) => {
      this.#socket = socket;
      this.#write(socket);
    };
    const fail = (reason: string) => {
      if (!isOver()) this.close(reason);
    };
    const done = new AbortController();
    void this.#clock.sleep(Math.min(CONNECT_MS, this.#timeoutMs), done.signal).then(() => {
      if (this.#socket === undefined) fail('no connection in time');
    });
    Bun.connect<undefined>({
      hostname,
      port: Number(url.port || (tls ? 443 : 80)),
      tls: tls ? { serverName: hostname, rejectUnauthorized: true } : false,
      data: undefined,
      socket: {
        open(socket) {
          if (isOver()) return void socket.terminate();
          socket.setNoDelay(true);
          if (!tls) ready(socket);
        },
        handshake(socket, success, error) {
          if (isOver()) return void socket.terminate();
          if (success && error === null) ready(socket);
          else fail('its certificate or TLS was refused');
        },
        data: (_, bytes) => {
          if (!isOver()) this.#read(bytes);
        },
        drain: (socket) => {
          if (!isOver()) this.#write(socket);
        },
        end: () => {
          if (!isOver()) this.#ended();
        },
        close: () => fail('connection closed'),
        error: () => fail('connection broken'),
      },
    })
      .catch((error: unknown) =>
        fail(
          error instanceof Error && 'code' in error
            ? `no connection: ${String(error.code)}`
            : 'no connection',
        ),
      )
      .finally(() => {
        if (!tls || isOver()) done.abort();
      });
  }

  #write(socket: Bun.Socket<undefined>): void {
    if (this.#unwritten.length === 0) return;
    const written = Math.max(0, socket.write(this.#unwritten));
    this.#unwritten = this.#unwritten.subarray(written);
  }

  #read(bytes: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === undefined) return this.close();
    if (exchange.decoder !== undefined) return this.#decode(exchange, bytes);
    const head = exchange.head.length === 0 ? bytes : Buffer.concat([exchange.head, bytes]);
    const read = readHead(head);
    if (read.kind === 'bad') return this.close(`not HTTP: ${read.reason}`);
    if (read.kind === 'more') {
      // The runtime reuses the memory of a read for the next one.
      exchange.head = Buffer.from(head);
      return;
    }
    exchange.response = read.head;
    exchange.decoder = new BodyDecoder(read.head.framing);
    if (read.head.status !== 200) {
      const [, text] = /\r\nretry-after:([^\r\n]*)/i.exec(head.toString('latin1', 0, read.end)) ?? [];
      exchange.retryAfter = retryAfterOf(read.head.status, text?.trim(), this.#clock.now());
    }
    this.#decode(exchange, head.subarray(read.end));
  }

  #decode(exchange: Exchange, bytes: Buffer): void {
    const { decoder, response } = exchange;
    if (decoder === undefined || response === undefined) return;
    const piece = decoder.push(bytes);
    // Of a read, whose memory is reused too.
    if (exchange.bytes < WHOLE_BYTES_MAX && piece.length > 0) exchange.pieces.push(Buffer.from(piece));
    exchange.bytes += piece.length;
    if (exchange.bytes > WHOLE_BYTES_MAX && exchange.pieces.length > 1) {
      exchange.pieces = [Buffer.concat(exchange.pieces).subarray(0, FIRST_BYTES)];
    }
    if (decoder.state === 'bad') return this.close('its framing is broken');
    if (decoder.state === 'end' || decoder.state === 'surplus') this.#complete(exchange, response);
  }

  /** The other side sends no more: the end of a body that has no other. */
  #ended(): void {
    const { response } = this.#exchange ?? {};
    // Whoever has the reply may call again at once, over a new connection.
    if (this.#exchange !== undefined && response?.framing === 'until-close')
      return this.#complete(this.#exchange, response);
    this.close('connection closed');
  }

  #complete(exchange: Exchange, { status, reusable }: ResponseHead): void {
    const { retryAfter, bytes, pieces, onReply } = exchange;
    this.#exchange = undefined;
    if (!reusable) this.close();
    const [first = EMPTY] = pieces;
    const body = pieces.length === 1 ? first : Buffer.concat(pieces);
    onReply({ kind: 'reply', status, retryAfter, bytes, body, isWhole: bytes <= WHOLE_BYTES_MAX });
  }

  #settle(reply: Reply): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.onReply(reply);
  }
}
