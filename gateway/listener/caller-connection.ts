import type { Clock } from '../../shared/clock.ts';
import type { Body, RpcRequest, RpcResponse } from './http.ts';
import { EMPTY } from '../upstream/http-connection.ts';
import type { StreamBody } from '../upstream/response-reader.ts';
import { BodyDecoder } from '../upstream/http-parser.ts';
import { atEndOfTurn } from '../upstream/turns.ts';
import { type BadHead, readRequestHead, type RequestHead } from './request-head.ts';

/** What a connection knows of its listener. */
export type Listener = Readonly<{
  clock: Clock;
  /** A head and a body must have come whole so long after their first byte, and a next request so long after an answer. */
  quietMs: number;
  answer(request: RpcRequest): RpcResponse | Promise<RpcResponse>;
  /** Answers when `answer` fails; that is unexpected. */
  internalError(): RpcResponse;
  /** Whether connections end with the answer under way. */
  isDraining(): boolean;
  /** The field `date` of a response (RFC 9110 6.6.1). */
  date(): string;
  onClose(connection: CallerConnection): void;
}>;

/** What is kept of a body that nobody has asked for yet, and of requests behind the one under way. */
const AHEAD_BYTES_MAX = 65_536;
/** What is read of a refused body, so that a caller who sends first sees the refusal. */
const READ_OUT_BYTES_MAX = 16_777_216;
/** How long a caller may take to close a connection that was ended by an answer (RFC 9112 9.6). */
const LINGER_MS = 2_000;
/** So much of a body is copied, so that what stands before or behind it leaves in the same write. */
const JOINED_BYTES_MAX = 16_384;

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');
const LINE_END = Buffer.from('\r\n');
const CALLER_LEFT: Body = { kind: 'caller-left' };

type StreamedResponse = RpcResponse & Readonly<{ body: StreamBody }>;

/** The request under way on a connection. */
class Exchange implements RpcRequest {
  readonly headers: RequestHead;
  readonly beganMs: number;
  readonly #connection: CallerConnection;
  /** There for a body in chunks. */
  readonly #decoder: BodyDecoder | undefined;
  /** What is to come of a body without chunks. */
  #left: number;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** What is read of the body at most; `undefined`: nobody has asked for it yet. */
  #bytesMax: number | undefined;
  #asked: ((body: Body) => void) | undefined;
  #abort: AbortController | undefined;
  #hasLeft = false;
  /** Whether the body is read no more, but for its end. */
  isRefused = false;
  isAnswered = false;

  constructor(head: RequestHead, connection: CallerConnection, beganMs: number) {
    this.headers = head;
    this.#connection = connection;
    this.beganMs = beganMs;
    this.#decoder = head.framing === 'chunked' ? new BodyDecoder(head.framing, true) : undefined;
    this.#left = head.framing === 'chunked' ? Infinity : head.framing;
  }

  get method(): string {
    return this.headers.method;
  }

  get url(): string {
    return this.headers.target;
  }

  get address(): string | undefined {
    return this.#connection.address;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#hasLeft) this.#abort.abort();
    return this.#abort.signal;
  }

  get isWhole(): boolean {
    return this.#left === 0;
  }

  /** Takes what the bytes hold of the body; gives those behind it, or that its framing is broken. */
  take(bytes: Buffer): Buffer | 'bad' {
    let [piece, restBytes] = [bytes, Math.max(0, bytes.length - this.#left)];
    if (this.#decoder !== undefined) {
      piece = this.#decoder.push(bytes);
      // It must not hold on to all that it came in, which may be chunk sizes.
      if (2 * piece.length < bytes.length) piece = Buffer.from(piece);
      const { state, surplusBytes } = this.#decoder;
      if (state === 'bad') return 'bad';
      if (state === 'end' || state === 'surplus') this.#left = 0;
      restBytes = surplusBytes;
    } else {
      if (restBytes > 0) piece = bytes.subarray(0, this.#left);
      this.#left -= piece.length;
    }
    this.#bytes += piece.length;
    if (!this.isRefused) this.#pieces.push(piece);
    if (this.#asked !== undefined) {
      if (this.isWhole) this.#give(this.#whole());
      else if (this.#bytes > (this.#bytesMax ?? Infinity)) this.#give(this.#tooLarge(true));
    }
    return restBytes === 0 ? EMPTY : bytes.subarray(bytes.length - restBytes);
  }

  /** Whether so much has come that no more is read until it is asked for, or it is better not read at all. */
  get isAhead(): boolean {
    return this.#bytesMax === undefined && !this.isRefused && this.#bytes > AHEAD_BYTES_MAX;
  }

  get isEndless(): boolean {
    return this.isRefused && this.#bytes > READ_OUT_BYTES_MAX;
  }

  readBody(bytesMax: number): Body | Promise<Body> {
    this.#bytesMax = bytesMax;
    const { framing } = this.headers;
    if (framing !== 'chunked' && framing > bytesMax) return this.#tooLarge(framing > READ_OUT_BYTES_MAX);
    if (this.#bytes > bytesMax) return this.#tooLarge(!this.isWhole);
    if (this.isWhole) return this.#whole();
    if (this.#hasLeft) return CALLER_LEFT;
    const { promise, resolve } = Promise.withResolvers<Body>();
    this.#asked = resolve;
    this.#connection.readOn(this.#bytes === 0 && /^100-continue$/i.test(this.headers.get('expect') ?? ''));
    return promise;
  }

  /** Reads no more of the body than its end. */
  refuseBody(): void {
    this.isRefused = true;
    this.#pieces = [];
  }

  leave(): void {
    this.#hasLeft = true;
    this.#give(CALLER_LEFT);
    this.#abort?.abort();
  }

  #whole(): Body {
    if (this.#bytesMax !== undefined && this.#bytes > this.#bytesMax) return this.#tooLarge(false);
    const [first = EMPTY] = this.#pieces;
    return { kind: 'body', bytes: this.#pieces.length <= 1 ? first : Buffer.concat(this.#pieces) };
  }

  #tooLarge(isEndless: boolean): Body {
    this.refuseBody();
    return { kind: 'body-too-large', isEndless };
  }

  #give(body: Body): void {
    const asked = this.#asked;
    this.#asked = undefined;
    asked?.(body);
  }
}

/**
 * One HTTP/1.1 connection of a caller, which carries one request at a time; those behind it wait. A class: it has an
 * identity, changes with every byte, and ends.
 */
export class CallerConnection {
  readonly #socket: Bun.Socket<CallerConnection>;
  readonly #listener: Listener;
  /** A head under way, or what came behind the request under way. */
  #held: Buffer = EMPTY;
  #exchange: Exchange | undefined;
  /** Since when the next head is waited for. */
  #sinceMs: number;
  /** What leaves together with the next bytes: a head, or a chunk's size. */
  #ahead: Buffer = EMPTY;
  #unwritten: Buffer[] = [];
  /** Since when nothing of that could be written. */
  #stuckSinceMs = 0;
  #drained: PromiseWithResolvers<void> | undefined;
  #state: 'open' | 'ending' | 'lingering' | 'closed' = 'open';
  #isPaused = false;
  /** The stream that is being passed on. */
  #body: StreamBody | undefined;

  constructor(socket: Bun.Socket<CallerConnection>, listener: Listener) {
    this.#socket = socket;
    this.#listener = listener;
    this.#sinceMs = listener.clock.monotonic();
  }

  get address(): string | undefined {
    return this.#state === 'closed' ? undefined : this.#socket.remoteAddress;
  }

  /** Whether it waits for a request, or for the rest of a head. */
  get isIdle(): boolean {
    return this.#exchange === undefined && this.#state === 'open' && this.#ahead.length === 0;
  }

  onData(bytes: Buffer): void {
    if (this.#state !== 'open') return this.#readOut(bytes);
    const exchange = this.#exchange;
    if (exchange !== undefined && !exchange.isWhole) return this.#takeBody(exchange, bytes);
    if (this.#held.length === 0 && exchange === undefined) this.#sinceMs = this.#listener.clock.monotonic();
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    if (exchange === undefined) this.#readNext();
    else if (this.#held.length > AHEAD_BYTES_MAX) this.#pause();
  }

  onDrain(): void {
    for (let piece = this.#unwritten[0]; piece !== undefined; piece = this.#unwritten[0]) {
      const written = Math.max(0, this.#socket.write(piece));
      if (written > 0) this.#stuckSinceMs = this.#listener.clock.monotonic();
      if (written < piece.length) return void (this.#unwritten[0] = piece.subarray(written));
      this.#unwritten.shift();
    }
    this.#drained?.resolve();
    this.#drained = undefined;
    if (this.#state === 'ending') this.#linger();
  }

  onClose(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#listener.onClose(this);
    this.#unwritten = [];
    this.#held = EMPTY;
    this.#exchange?.leave();
    this.#body?.cancel();
    this.#drained?.resolve();
  }

  /** Ends what has been waited for too long; called about once a second. */
  onTick(nowMs: number): void {
    const { quietMs } = this.#listener;
    const exchange = this.#exchange;
    if (this.#state === 'lingering') return nowMs - this.#sinceMs >= LINGER_MS ? this.destroy() : undefined;
    const isStuck = this.#unwritten.length > 0 && nowMs - this.#stuckSinceMs >= quietMs;
    const isLate =
      exchange === undefined
        ? nowMs - this.#sinceMs >= quietMs
        : !exchange.isWhole && nowMs - exchange.beganMs >= quietMs;
    if (isStuck || isLate) this.destroy();
  }

  /** Ends the connection now. What has not left is lost. */
  destroy(): void {
    if (this.#state === 'closed') return;
    this.onClose();
    this.#socket.terminate();
  }

  endTurn(): void {
    const ahead = this.#ahead;
    this.#ahead = EMPTY;
    this.#send(ahead);
  }

  /** Reads the body of the request under way. */
  readOn(isExpected: boolean): void {
    if (isExpected) this.#write(CONTINUE);
    this.#resume();
  }

  #readNext(): void {
    while (this.#exchange === undefined && this.#held.length > 0 && this.#state === 'open') {
      const read = readRequestHead(this.#held);
      if (read.kind === 'more') return;
      if (read.kind === 'bad') return this.#refuse(read);
      const exchange = new Exchange(read.head, this, this.#listener.clock.monotonic());
      const rest = this.#held.subarray(read.end);
      this.#held = EMPTY;
      this.#exchange = exchange;
      if (rest.length > 0) this.#takeBody(exchange, rest);
      if (this.#exchange === exchange) this.#answer(exchange);
    }
  }

  #takeBody(exchange: Exchange, bytes: Buffer): void {
    const rest = exchange.take(bytes);
    if (rest === 'bad') return this.#refuse({ kind: 'bad', status: 400 });
    if (exchange.isWhole) {
      this.#held = rest;
      if (exchange.isAnswered) this.#next();
    } else if (exchange.isEndless) this.destroy();
    else if (exchange.isAhead) this.#pause();
  }

  #answer(exchange: Exchange): void {
    try {
      const response = this.#listener.answer(exchange);
      if (!(response instanceof Promise)) return this.#respond(exchange, response);
      response.then(
        (each) => this.#respond(exchange, each),
        () => this.#respond(exchange, this.#listener.internalError()),
      );
    } catch {
      this.#respond(exchange, this.#listener.internalError());
    }
  }

  #respond(exchange: Exchange, response: RpcResponse): void {
    const { body } = response;
    if (this.#exchange !== exchange || this.#state === 'closed') {
      if (body !== undefined && !(body instanceof Uint8Array)) body.cancel();
      return;
    }
    const isWhole = body === undefined || body instanceof Uint8Array;
    const length = isWhole ? (body?.length ?? 0) : response.length;
    const isKept = this.#isKept(exchange, response, length);
    const head = this.#headOf(exchange.headers, response, length, isKept);
    if (isWhole && (body?.length ?? 0) <= JOINED_BYTES_MAX) {
      const bytes = exchange.method === 'HEAD' ? EMPTY : (body ?? EMPTY);
      const joined = Buffer.allocUnsafe(head.length + bytes.length);
      joined.write(head, 'latin1');
      joined.set(bytes, head.length);
      this.#ahead = this.#ahead.length === 0 ? joined : Buffer.concat([this.#ahead, joined]);
      atEndOfTurn(this);
      return this.#finish(exchange, isKept);
    }
    this.#ahead = Buffer.from(head, 'latin1');
    if (!isWhole) return void this.#stream(exchange, { ...response, body }, isKept);
    this.#write(
      exchange.method === 'HEAD' || body === undefined
        ? EMPTY
        : Buffer.from(body.buffer, body.byteOffset, body.length),
    );
    this.#finish(exchange, isKept);
  }

  #isKept({ headers, isWhole }: Exchange, { fields }: RpcResponse, length: number | undefined): boolean {
    if (fields['connection'] === 'close' || this.#listener.isDraining()) return false;
    // Who waits for a 100 in vain may send the next request in place of the body (RFC 9110 10.1.1).
    if (!isWhole && headers.expectsContinue) return false;
    return headers.keepsAlive && (length !== undefined || headers.isHttp11);
  }

  #headOf(head: RequestHead, { status, fields }: RpcResponse, length: number | undefined, isKept: boolean) {
    let text = `HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n`;
    for (const name in fields) if (name !== 'connection') text += `${name}: ${fields[name]}\r\n`;
    if (!isKept) text += 'connection: close\r\n';
    else if (!head.isHttp11) text += 'connection: keep-alive\r\n';
    if (length === undefined) text += head.isHttp11 ? 'transfer-encoding: chunked\r\n' : '';
    else if (status !== 204) text += `content-length: ${length}\r\n`;
    return `${text}date: ${this.#listener.date()}\r\n\r\n`;
  }

  /** Passes a stream on as it comes. Unless it was whole, the connection ends without the end of the answer. */
  async #stream(
    exchange: Exchange,
    { body, length, onEnd }: StreamedResponse,
    isKept: boolean,
  ): Promise<void> {
    const isChunked = length === undefined && exchange.headers.isHttp11;
    let left = length ?? Infinity;
    let last = EMPTY;
    this.#body = body;
    const end = await body.pipe((piece) => {
      if (isChunked) return this.#writeChunk(piece);
      left -= piece.length;
      if (left > 0) return this.#write(piece);
      // An answer that turns out to be none at its end must not look whole.
      last = Buffer.from(piece.subarray(-1));
      return this.#write(piece.subarray(0, -1));
    });
    this.#body = undefined;
    onEnd?.(end);
    if (this.#state === 'closed') return;
    const isWhole = end.kind === 'complete' && (length === undefined || left === 0);
    this.#write(isChunked && isWhole ? LAST_CHUNK : isWhole ? last : EMPTY);
    if (isWhole) return this.#finish(exchange, isKept);
    // Where the end shows by itself, what has been written still arrives.
    if ((isChunked || length !== undefined) && this.#unwritten.length === 0) this.#end();
    else this.destroy();
  }

  #writeChunk(piece: Buffer): Promise<void> | undefined {
    if (piece.length === 0) return this.#drained?.promise;
    this.#ahead = Buffer.concat([this.#ahead, Buffer.from(`${piece.length.toString(16)}\r\n`)]);
    // Some clients give a chunk to its reader with its line end.
    const tail = Buffer.concat([piece.subarray(-JOINED_BYTES_MAX), LINE_END]);
    if (piece.length <= JOINED_BYTES_MAX) return this.#write(tail);
    this.#write(piece.subarray(0, -JOINED_BYTES_MAX));
    return this.#write(tail);
  }

  /** Writes bytes, behind those that are to leave with them, so that neither is sent alone where it is small. */
  #write(bytes: Buffer): Promise<void> | undefined {
    const ahead = this.#ahead;
    if (ahead.length === 0) return this.#send(bytes);
    this.#ahead = EMPTY;
    const joined = bytes.length <= 2 * JOINED_BYTES_MAX ? bytes : bytes.subarray(0, JOINED_BYTES_MAX);
    this.#send(Buffer.concat([ahead, joined]));
    return this.#send(bytes.subarray(joined.length));
  }

  /** Hands bytes, which may be overwritten afterwards, to the system; gives a promise when not all of them are taken at once. */
  #send(bytes: Buffer): Promise<void> | undefined {
    if (this.#state === 'closed' || bytes.length === 0) return this.#drained?.promise;
    const written = this.#unwritten.length > 0 ? 0 : Math.max(0, this.#socket.write(bytes));
    if (written === bytes.length) return undefined;
    if (this.#unwritten.length === 0) this.#stuckSinceMs = this.#listener.clock.monotonic();
    this.#unwritten.push(Buffer.from(bytes.subarray(written)));
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  /** The answer has been written: the next request, or the end of the connection. */
  #finish(exchange: Exchange, isKept: boolean): void {
    exchange.isAnswered = true;
    if (!isKept) return this.#end();
    if (!exchange.isWhole) {
      exchange.refuseBody();
      return this.#resume();
    }
    this.#next();
  }

  #next(): void {
    this.#exchange = undefined;
    this.#sinceMs = this.#listener.clock.monotonic();
    if (this.#listener.isDraining()) return this.#end();
    this.#resume();
    this.#readNext();
  }

  #refuse({ status }: BadHead): void {
    this.#exchange?.leave();
    this.#write(Buffer.from(`HTTP/1.1 ${status} ${REASONS[status]}\r\nConnection: close\r\n\r\n`));
    this.#end();
  }

  /** Ends the connection when all has been written. */
  #end(): void {
    if (this.#state !== 'open') return;
    this.endTurn();
    this.#state = 'ending';
    if (this.#unwritten.length === 0) this.#linger();
  }

  /** Says that no more comes, and reads on a while: what a caller has not read is lost when bytes meet a closed socket. */
  #linger(): void {
    this.#state = 'lingering';
    this.#exchange = undefined;
    this.#held = EMPTY;
    this.#sinceMs = this.#listener.clock.monotonic();
    this.#resume();
    this.#socket.shutdown();
  }

  #readOutBytes = 0;
  #readOut(bytes: Buffer): void {
    this.#readOutBytes += bytes.length;
    if (this.#readOutBytes > READ_OUT_BYTES_MAX) this.destroy();
  }

  #pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }
}

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  204: 'No Content',
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
};
