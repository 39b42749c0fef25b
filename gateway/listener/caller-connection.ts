import type { Clock } from '../../shared/clock.ts';
import { WAITING_BYTES_MAX, Exchange, READ_OUT_BYTES_MAX } from './exchange.ts';
import type { CallerRequest } from './caller-request.ts';
import type { RpcResponse } from './http.ts';
import { EMPTY } from '../upstream/http-connection.ts';
import type { StreamBody } from '../upstream/response-reader.ts';
import { atEndOfTurn } from '../upstream/turns.ts';
import { type BadHead, readRequestHead, type RequestHead } from './request-head.ts';
import { rpcResponseOf } from './web.ts';

/** A route's answer, as it is or as a `Response` that is yet to be read. */
type Answer = RpcResponse | Response;

/** What a connection knows of its listener. */
export type Listener = Readonly<{
  clock: Clock;
  /** A body must have come whole so long after its head, and a next request must begin so long after an answer. */
  quietMs: number;
  answer(request: CallerRequest): Answer | Promise<Answer>;
  /** Whether connections end with the answer under way. */
  isDraining(): boolean;
  /** The field `date` of a response (RFC 9110 6.6.1). */
  date(): string;
  onClose(connection: CallerConnection): void;
}>;

/** A head must have come whole so long after the connection was opened, or after its first byte on one that was used before. */
const HEAD_MS = 10_000;
/** How long a caller may take to close a connection that was ended by an answer, or to send more (RFC 9112 9.6). */
const LINGER_MS = 2_000;
/** So much of a body is copied, so that what stands before or behind it leaves in the same write. */
const JOINED_BYTES_MAX = 16_384;

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');
const LINE_END = Buffer.from('\r\n');
/** Where no error hook of the app has answered. */
const BROKEN: RpcResponse = { status: 500, fields: {} };

type StreamedResponse = RpcResponse & Readonly<{ body: StreamBody }>;

/** One HTTP/1.1 connection of a caller, which carries one request at a time; those behind it wait. */
export class CallerConnection {
  readonly #socket: Bun.Socket<CallerConnection>;
  readonly #listener: Listener;
  /** A head under way, or what came behind the request under way. */
  #held: Buffer = EMPTY;
  #exchange: Exchange | undefined;
  /** Since when the next head is waited for. */
  #sinceMs: number;
  /** What leaves together with the next bytes: a head, or a chunk's size. */
  #corked: Buffer = EMPTY;
  #unwritten: Buffer[] = [];
  /** Answered, but not to the last byte. */
  #unsent: Exchange[] = [];
  /** Since when nothing of that could be written. */
  #stuckSinceMs = 0;
  #drained: PromiseWithResolvers<void> | undefined;
  /** It ends when all has been written; then it lingers: nothing more is sent, and what comes is thrown away. */
  #state: 'open' | 'ending' | 'lingering' | 'closed' = 'open';
  #isPaused = false;
  #isReadingHeads = false;
  /** Whether it has not carried a request yet. */
  #isNew = true;
  /** The stream that is being passed on. */
  #body: StreamBody | undefined;

  constructor(socket: Bun.Socket<CallerConnection>, listener: Listener) {
    this.#socket = socket;
    this.#listener = listener;
    this.#sinceMs = listener.clock.monotonic();
  }

  get peer(): Bun.SocketAddress | null {
    if (this.#state === 'closed') return null;
    const { remoteAddress: address, remoteFamily: family, remotePort: port } = this.#socket;
    return { address, family, port };
  }

  /** Whether it waits for a request, or for the rest of a head. */
  get isIdle(): boolean {
    const isWritten = this.#corked.length === 0 && this.#unwritten.length === 0;
    return this.#exchange === undefined && this.#state === 'open' && isWritten;
  }

  onData(bytes: Buffer): void {
    if (this.#state !== 'open') return this.#readOut(bytes);
    const exchange = this.#exchange;
    if (exchange !== undefined && !exchange.isWhole) return this.#takeBody(exchange, bytes);
    if (this.#held.length === 0 && exchange === undefined) this.#sinceMs = this.#listener.clock.monotonic();
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    if (exchange === undefined) this.#readNext();
    this.#pace();
  }

  onDrain(): void {
    for (let piece = this.#unwritten[0]; piece !== undefined; piece = this.#unwritten[0]) {
      const written = this.#put(piece);
      if (written > 0) this.#stuckSinceMs = this.#listener.clock.monotonic();
      if (written < piece.length) return void (this.#unwritten[0] = piece.subarray(written));
      this.#unwritten.shift();
    }
    this.#drained?.resolve();
    this.#drained = undefined;
    this.#settleSent();
    this.#sinceMs = this.#listener.clock.monotonic();
    if (this.#state === 'ending') this.#linger();
    else if (this.#exchange !== undefined) this.#next(this.#exchange);
  }

  onClose(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#listener.onClose(this);
    this.#unwritten = [];
    this.#held = this.#corked = EMPTY;
    this.#exchange?.leave();
    this.#body?.cancel();
    this.#drained?.resolve();
    this.#settleSent();
  }

  /** Ends what has been waited for too long; called about once a second. */
  onTick(nowMs: number): void {
    const { quietMs } = this.#listener;
    const exchange = this.#exchange;
    const isLingering = this.#state === 'lingering';
    const waitMs = isLingering ? LINGER_MS : this.#isNew || this.#held.length > 0 ? HEAD_MS : quietMs;
    const isUnread = this.#unwritten.length > 0;
    const isStuck = (isUnread || isLingering) && nowMs - this.#stuckSinceMs >= quietMs;
    const isLate =
      exchange === undefined
        ? !isUnread && nowMs - this.#sinceMs >= waitMs
        : !exchange.isWhole && nowMs - exchange.beganMs >= quietMs;
    if (isStuck || isLate) this.destroy();
  }

  /** Ends it unless an answer is waited for, which ends it by itself. */
  endWhenAnswered(): void {
    if (this.isIdle) this.destroy();
    else if (this.#exchange?.isAnswered !== false) this.#end();
  }

  /** Ends the connection now. A reset loses what the system has not delivered yet, so only what is under way is cut by one. */
  destroy(): void {
    if (this.#state === 'closed') return;
    const isCut = this.#exchange !== undefined || this.#unwritten.length > 0;
    this.onClose();
    if (isCut) return void this.#socket.terminate();
    this.#socket.shutdown();
    this.#socket.close();
  }

  /** Writes what the turn has gathered (`turns.ts`). */
  endTurn(): void {
    const ahead = this.#corked;
    this.#corked = EMPTY;
    this.#send(ahead);
    if (this.#unsent.length > 0) this.#settleSent();
  }

  #settleSent(): void {
    if (this.#unsent.length === 0 || this.#corked.length > 0 || this.#unwritten.length > 0) return;
    const sent = this.#unsent;
    this.#unsent = [];
    for (const exchange of sent) exchange.sent();
  }

  /** Reads the body of the request under way. */
  readOn(isExpected: boolean): void {
    if (isExpected) this.#write(CONTINUE);
    this.#pace();
  }

  /** Answers what is held, one after another: not by recursion, for a thousand heads may come in one read. */
  #readNext(): void {
    if (this.#isReadingHeads) return;
    this.#isReadingHeads = true;
    while (this.#exchange === undefined && this.#held.length > 0 && this.#state === 'open') {
      // The permit of an answer is given back before the next request asks for one.
      if (this.#unsent.length > 0) this.endTurn();
      const read = readRequestHead(this.#held);
      if (read.kind === 'bad') this.#refuse(read);
      if (read.kind === 'more') {
        // It must not keep the memory of what came before it.
        if (this.#held.buffer.byteLength > WAITING_BYTES_MAX) this.#held = Buffer.from(this.#held);
        break;
      }
      if (read.kind !== 'head') break;
      const exchange = new Exchange(read.head, this, this.#listener.clock.monotonic());
      const rest = this.#held.subarray(read.end);
      this.#held = EMPTY;
      this.#exchange = exchange;
      if (rest.length > 0) this.#takeBody(exchange, rest);
      if (this.#exchange === exchange) this.#answer(exchange);
    }
    this.#isReadingHeads = false;
  }

  #takeBody(exchange: Exchange, bytes: Buffer): void {
    const rest = exchange.take(bytes);
    if (rest === 'bad') return this.#refuse({ kind: 'bad', status: 400 });
    if (exchange.isWhole) {
      this.#held = rest;
      this.#next(exchange);
    } else if (exchange.isAnswered && exchange.isEndless) this.#end();
    this.#pace();
  }

  #answer(exchange: Exchange): void {
    try {
      const answer = this.#listener.answer(exchange);
      if (answer instanceof Promise) this.#await(exchange, answer);
      else this.#respond(exchange, answer);
    } catch {
      this.#respond(exchange, BROKEN);
    }
  }

  #await(exchange: Exchange, answer: Promise<Answer>): void {
    answer.then(
      (each) => this.#respond(exchange, each),
      () => this.#respond(exchange, BROKEN),
    );
  }

  /** An unexpected error costs this connection, and not the process. */
  #respond(exchange: Exchange, response: Answer): void {
    if (response instanceof Response) return this.#await(exchange, rpcResponseOf(response, exchange.method));
    try {
      const { body } = response;
      if (this.#exchange === exchange && this.#state === 'open') this.#begin(exchange, response);
      else if (body !== undefined && !(body instanceof Uint8Array)) body.cancel();
    } catch {
      this.destroy();
    }
  }

  /** A small answer leaves at the end of the turn, a large one at once, a stream as it comes; that to HEAD is a head alone. */
  #begin(exchange: Exchange, response: RpcResponse): void {
    const { body = EMPTY } = response;
    const isStream = !(body instanceof Uint8Array);
    if (isStream) this.#body = body;
    const isHead = exchange.method === 'HEAD';
    const length = isStream || (isHead && response.body === undefined) ? response.length : body.length;
    const isKept = this.#isKept(exchange, response, length);
    const head = this.#headOf(exchange.headers, response, length, isKept);
    const bytes = isStream || isHead ? EMPTY : body;
    if (isStream || bytes.length > JOINED_BYTES_MAX) {
      this.#corked = Buffer.concat([this.#corked, Buffer.from(head, 'latin1')]);
      if (isStream) {
        this.#stream(exchange, { ...response, body }, isKept).catch(() => this.destroy());
        return;
      }
      this.#write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    } else {
      const joined = Buffer.allocUnsafe(head.length + bytes.length);
      joined.write(head, 'latin1');
      joined.set(bytes, head.length);
      if (this.#corked.length > JOINED_BYTES_MAX) this.endTurn();
      this.#corked = this.#corked.length === 0 ? joined : Buffer.concat([this.#corked, joined]);
      atEndOfTurn(this);
    }
    this.#finish(exchange, isKept);
  }

  #isKept(exchange: Exchange, { fields }: RpcResponse, length: number | undefined): boolean {
    const { headers, isWhole, leftBytes } = exchange;
    if (fields['connection'] === 'close' || this.#listener.isDraining()) return false;
    // Who waits for a 100 in vain may send the next request in place of the body (RFC 9110 10.1.1).
    if (!isWhole && (headers.expectsContinue || leftBytes > READ_OUT_BYTES_MAX)) return false;
    return headers.keepsAlive && (length !== undefined || headers.isHttp11);
  }

  #headOf(head: RequestHead, response: RpcResponse, length: number | undefined, isKept: boolean) {
    const { status, fields, cookies } = response;
    let text = `HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n`;
    for (const name in fields) if (name !== 'connection') text += `${name}: ${fields[name]}\r\n`;
    if (cookies !== undefined) for (const cookie of cookies) text += `set-cookie: ${cookie}\r\n`;
    if (!isKept) text += 'connection: close\r\n';
    else if (!head.isHttp11) text += 'connection: keep-alive\r\n';
    if (length === undefined) text += head.isHttp11 ? 'transfer-encoding: chunked\r\n' : '';
    else if (status !== 204 && status !== 304) text += `content-length: ${length}\r\n`;
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
    const end = await body.pipe((piece) => {
      if (isChunked) return this.#writeChunk(piece);
      left -= piece.length;
      if (left > 0 || piece.length === 0) return this.#write(piece);
      // The last byte waits: an answer that turns out to be none at its end must not look whole.
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
    this.#corked = Buffer.concat([this.#corked, Buffer.from(`${piece.length.toString(16)}\r\n`)]);
    // Some clients give a chunk to its reader with its line end.
    const tail = Buffer.concat([piece.subarray(-JOINED_BYTES_MAX), LINE_END]);
    if (piece.length <= JOINED_BYTES_MAX) return this.#write(tail);
    this.#write(piece.subarray(0, -JOINED_BYTES_MAX));
    return this.#write(tail);
  }

  /** Writes bytes, behind those that are to leave with them, so that neither is sent alone where it is small. */
  #write(bytes: Buffer): Promise<void> | undefined {
    const ahead = this.#corked;
    if (ahead.length === 0) return this.#send(bytes);
    this.#corked = EMPTY;
    const joined = bytes.length <= 2 * JOINED_BYTES_MAX ? bytes : bytes.subarray(0, JOINED_BYTES_MAX);
    this.#send(Buffer.concat([ahead, joined]));
    return this.#send(bytes.subarray(joined.length));
  }

  /** Hands bytes, which may be overwritten afterwards, to the system; gives a promise when not all of them are taken at once. */
  #send(bytes: Buffer): Promise<void> | undefined {
    if (this.#state === 'closed' || bytes.length === 0) return this.#drained?.promise;
    const written = this.#unwritten.length > 0 ? 0 : this.#put(bytes);
    if (written === bytes.length) return undefined;
    if (this.#unwritten.length === 0) this.#stuckSinceMs = this.#listener.clock.monotonic();
    this.#unwritten.push(Buffer.from(bytes.subarray(written)));
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  /** A write that meets a reset ends the connection, later: where it does not read, the runtime does not tell of it. */
  #put(bytes: Buffer): number {
    const written = this.#socket.write(bytes);
    if (written < 0) queueMicrotask(() => this.destroy());
    return Math.max(0, written);
  }

  /** The answer has been written: the next request, or the end of the connection. */
  #finish(exchange: Exchange, isKept: boolean): void {
    exchange.isAnswered = true;
    this.#awaitSent(exchange);
    if (!isKept) return this.#end();
    if (exchange.isWhole) return this.#next(exchange);
    exchange.refuseBody();
    this.#pace();
  }

  #awaitSent(exchange: Exchange): void {
    if (!exchange.isAwaited) return exchange.sent();
    this.#unsent.push(exchange);
    this.#settleSent();
  }

  /** Goes on to the next request once this one has come whole and its answer has left: a caller that does not read is not answered on. */
  #next(exchange: Exchange): void {
    if (!exchange.isAnswered || !exchange.isWhole || this.#unwritten.length > 0) return;
    this.#exchange = undefined;
    this.#isNew = false;
    this.#sinceMs = this.#listener.clock.monotonic();
    if (this.#listener.isDraining()) return this.#end();
    this.#readNext();
    this.#pace();
  }

  #refuse({ status }: BadHead): void {
    const exchange = this.#exchange;
    exchange?.leave();
    if (exchange?.isAnswered !== true)
      this.#write(Buffer.from(`HTTP/1.1 ${status} ${REASONS[status]}\r\nConnection: close\r\n\r\n`));
    this.#end();
  }

  /** Ends the connection when all has been written. */
  #end(): void {
    if (this.#state !== 'open') return;
    if (this.#exchange !== undefined) this.#awaitSent(this.#exchange);
    this.endTurn();
    this.#state = 'ending';
    this.#exchange = undefined;
    this.#held = EMPTY;
    if (this.#unwritten.length === 0) this.#linger();
  }

  /** Says that no more comes, and reads on a while: what a caller has not read is lost when bytes meet a closed socket. */
  #linger(): void {
    this.#state = 'lingering';
    this.#sinceMs = this.#stuckSinceMs = this.#listener.clock.monotonic();
    this.#pace();
    this.#socket.shutdown();
  }

  #readOutBytes = 0;
  #readOut(bytes: Buffer): void {
    this.#sinceMs = this.#listener.clock.monotonic();
    this.#readOutBytes += bytes.length;
    if (this.#readOutBytes > READ_OUT_BYTES_MAX) this.destroy();
  }

  /** Stops reading while enough waits: requests behind the one under way, or a body that was not asked for. */
  #pace(): void {
    if (this.#state === 'closed') return;
    const exchange = this.#exchange;
    const isBody = exchange !== undefined && !exchange.isWhole;
    const isEnough = isBody ? exchange.isWaiting : this.#held.length > WAITING_BYTES_MAX;
    if (isEnough === this.#isPaused) return;
    this.#isPaused = isEnough;
    if (isEnough) this.#socket.pause();
    else this.#socket.resume();
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
