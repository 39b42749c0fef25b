import type { Clock } from '../../shared/clock.ts';
import { EMPTY, readFrom } from '../http/slab.ts';
import type { StreamBody } from '../http/stream-body.ts';
import { Outgoing } from '../http/outgoing.ts';
import { type BadHead, readRequestHead } from '../http/request-head.ts';
import { bareHead, responseHead } from '../http/response-head.ts';
import type { BodyBudget, Holder, Share } from './body-budget.ts';
import type { CallerRequest } from './caller-request.ts';
import { Exchange, READ_OUT_BYTES_MAX, UNCOUNTED_BYTES_MAX, WAITING_BYTES_MAX } from './exchange.ts';
import { RpcResponse } from './rpc.ts';
import type { Intake } from './intake.ts';
import { awaitWork } from './turn-work.ts';
import { rpcResponseOf } from './web.ts';

/** A route's answer, as it is or as a `Response` that is yet to be read. */
type Answer = RpcResponse | Response;

/** What a connection knows of its listener. */
export type Listener = Readonly<{
  clock: Clock;
  bodies: BodyBudget;
  intake: Intake;
  /** A body must have come whole so long after its head, and a next request must begin so long after an answer. */
  quietMs: number;
  answer(request: CallerRequest): Answer | Promise<Answer>;
  /** Whether connections end with the answer under way. */
  isDraining(): boolean;
  /** The field `date` of a response (RFC 9110 6.6.1). */
  date(): string;
  onClose(connection: CallerConnection): void;
}>;

/**
 * A head must have come whole so long after the connection was opened, or after its first byte on one that was used before;
 * without a valid key its body too. So long at most such a request's connection lives after its refusal.
 */
const STRANGER_MS = 10_000;
/** A connection ends after so many refused requests without a valid key in a row. */
const REFUSALS_MAX = 200;
/** What is walked at once of a body in chunks. */
const PART_BYTES_MAX = 16_384;
/** A caller who has ended its sending side is probed so long after that, and after twice the time again. */
const PROBE_MS = 250;
/** How long a caller may take to close a connection that was ended by an answer, or to send more (RFC 9112 9.6). */
const LINGER_MS = 2_000;

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');
/** Where no error hook of the app has answered. */
const BROKEN = new RpcResponse({ status: 500, fields: {} });

/** One HTTP/1.1 connection of a caller, which carries one request at a time; those behind it wait. */
export class CallerConnection {
  readonly #socket: Bun.Socket<CallerConnection>;
  readonly #listener: Listener;
  /** A head under way, or what came behind the request under way. */
  #held: Buffer = EMPTY;
  #exchange: Exchange | undefined;
  /** Since when the next head is waited for. */
  #sinceMs: number;
  readonly #out: Outgoing;
  /** It ends when all has been written; then it lingers: nothing more is sent, and what comes is thrown away. */
  #state: 'open' | 'ending' | 'lingering' | 'closed' = 'open';
  #isPaused = false;
  /** Whether nothing is read in this turn (`intake.ts`). */
  #isStopped = false;
  /** What the held bytes wait for: the rest of a head that they begin, or their turn (`turn-work.ts`). */
  #waitsFor: 'nothing' | 'more' | 'turn' = 'nothing';
  /** How much memory what is held is a part of, and what that takes of the memory for bodies. */
  #memoryBytes = 0;
  readonly #share: Share;
  /** Whether it has not carried a request yet. */
  #isNew = true;
  /** Whether it has not, or only refused ones without a valid key, and how many of those in a row. */
  #isStranger = true;
  #refusals = 0;
  /** Whose the last request was. */
  #holder: Holder = 'keyless';
  /** There since the caller has ended its sending side: when it is probed, and after what time once more. */
  #halfClose: Readonly<{ probeAtMs: number; probeMs: number }> | undefined;
  /** The stream that is being passed on. */
  #body: StreamBody | undefined;

  constructor(socket: Bun.Socket<CallerConnection>, listener: Listener) {
    this.#socket = socket;
    this.#listener = listener;
    this.#out = new Outgoing(socket, listener.clock, () => this.destroy());
    this.#share = listener.bodies.share();
    this.#sinceMs = listener.clock.monotonic();
  }

  get peer(): Bun.SocketAddress | null {
    if (this.#state === 'closed') return null;
    const { remoteAddress: address, remoteFamily: family, remotePort: port } = this.#socket;
    return { address, family, port };
  }

  /** Whether it waits for a request, or for the rest of a head. */
  get isIdle(): boolean {
    return (
      this.#exchange === undefined &&
      this.#state === 'open' &&
      this.#out.isWritten &&
      this.#waitsFor !== 'turn'
    );
  }

  /**
   * Whether it is given up where descriptors are short: it waits for a request, or for the rest of one. Who has no valid
   * key is not waited for while it does not read its refusal either; who has one gets the time of a head for a body.
   */
  get isSpare(): boolean {
    const exchange = this.#exchange;
    if (exchange === undefined)
      return this.isIdle || (typeof this.#holder !== 'number' && this.#waitsFor !== 'turn');
    if (!exchange.hasKey) return !exchange.isWhole || exchange.isAnswered;
    return !exchange.isWhole && this.#listener.clock.monotonic() - exchange.beganMs >= STRANGER_MS;
  }

  /** The account whose body has not come whole. */
  get uploader(): number | undefined {
    const exchange = this.#exchange;
    return exchange?.isWhole === false && typeof exchange.holder === 'number' ? exchange.holder : undefined;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  set isStopped(isStopped: boolean) {
    this.#isStopped = isStopped;
    this.#pace();
  }

  onData(bytes: Buffer): void {
    this.#listener.intake.took(this, bytes.length);
    if (this.#state !== 'open') return this.#readOut(bytes);
    const exchange = this.#exchange;
    if (this.#waitsFor === 'turn') this.#hold(Buffer.concat([this.#held, bytes]));
    else if (exchange !== undefined && !exchange.isWhole) {
      this.#memoryBytes = bytes.length;
      this.#offer(exchange, bytes);
    } else {
      const isFirst = this.#held.length === 0 && exchange === undefined && !this.#isNew;
      this.#hold(this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]));
      if (exchange === undefined && !this.#out.isUnread) this.#readRequest(isFirst);
    }
    this.#goOn();
  }

  /**
   * The caller has ended its sending side. Whether it has left altogether shows when something is written to it, by a reset;
   * until then a request that came whole is answered (RFC 9112 9.6), and an answer that takes time is preceded by a 100.
   */
  onHalfClose(): void {
    this.#halfClose = { probeAtMs: this.#listener.clock.monotonic() + PROBE_MS, probeMs: PROBE_MS };
    if (this.#state === 'lingering') this.destroy();
    else this.#goOn();
  }

  onDrain(): void {
    if (!this.#out.drain()) return;
    this.#sinceMs = this.#listener.clock.monotonic();
    if (this.#state === 'ending') this.#linger();
    else if (this.#exchange !== undefined) this.#next(this.#exchange);
    else this.#goOn();
  }

  onClose(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#listener.onClose(this);
    this.#held = EMPTY;
    this.#count();
    this.#exchange?.leave();
    this.#body?.cancel();
    this.#out.close();
  }

  /** Ends what has been waited for too long, and probes who may have left; called twice a second. */
  onTick(nowMs: number): void {
    const { quietMs } = this.#listener;
    const exchange = this.#exchange;
    const patienceMs = this.#isStranger ? STRANGER_MS : quietMs;
    const isLingering = this.#state === 'lingering';
    const waitMs = isLingering ? LINGER_MS : this.#held.length > 0 ? STRANGER_MS : patienceMs;
    const { isUnread, stuckSinceMs } = this.#out;
    const isStuck = (isUnread || isLingering) && nowMs - stuckSinceMs >= patienceMs;
    const bodyMs = exchange?.hasKey === true ? quietMs : STRANGER_MS;
    const isLate =
      exchange === undefined
        ? !isUnread && nowMs - this.#sinceMs >= waitMs
        : !exchange.isWhole && nowMs - (exchange.answeredMs ?? exchange.beganMs) >= bodyMs;
    if (isStuck || isLate) this.destroy();
    else if (this.#halfClose !== undefined && nowMs >= this.#halfClose.probeAtMs)
      this.#probe(nowMs, 2 * this.#halfClose.probeMs);
  }

  /** Ends it unless an answer is waited for, which ends it by itself. */
  endWhenAnswered(): void {
    if (this.isIdle) this.destroy();
    else if (this.#exchange?.isAnswered !== false) this.#end();
  }

  /** Ends the connection now. A reset loses what the system has not delivered yet, so only what is under way is cut by one. */
  destroy(): void {
    if (this.#state === 'closed') return;
    const isCut = this.#exchange !== undefined || this.#out.isUnread;
    this.onClose();
    if (isCut) return void this.#socket.terminate();
    this.#socket.shutdown();
    this.#socket.close();
  }

  /** Reads the body of the request under way. */
  readOn(isExpected: boolean): void {
    if (isExpected) this.#out.write(CONTINUE);
    this.#pace();
  }

  /** Goes on with what is held: a part of a body, or one request. Gives what that cost (`turn-work.ts`). */
  workOn(): number {
    this.#waitsFor = 'nothing';
    if (this.#state !== 'open') return 1;
    this.#compact();
    const bytes = this.#held;
    const exchange = this.#exchange;
    if (exchange === undefined) this.#readRequest();
    else this.#takeBody(exchange, bytes);
    const left = this.#held.length;
    this.#goOn();
    return 1 + ((bytes.length - left) >> 10);
  }

  /** Has what is held read in its turn, as soon as that can be; ends the connection where nothing more can come. */
  #goOn(): void {
    const exchange = this.#exchange;
    if (this.#state === 'open' && this.#waitsFor !== 'turn') {
      const isBody = exchange !== undefined && !exchange.isWhole;
      const isNext = exchange === undefined && this.#waitsFor !== 'more';
      if (this.#held.length > 0 && (isBody || (isNext && !this.#out.isUnread))) {
        this.#waitsFor = 'turn';
        awaitWork(this);
      } else if (
        this.#halfClose !== undefined &&
        (isBody || (exchange === undefined && !(isNext && this.#held.length > 0)))
      ) {
        exchange?.leave();
        this.#end();
      }
    }
    this.#count();
    this.#pace();
  }

  /** Counts what is held beyond what every connection may. */
  #count(): void {
    const bytes = this.#held.length === 0 || this.#memoryBytes <= UNCOUNTED_BYTES_MAX ? 0 : this.#memoryBytes;
    if (!this.#share(this.#exchange?.holder ?? this.#holder, bytes)) this.destroy();
  }

  #hold(bytes: Buffer): void {
    this.#held = bytes;
    this.#memoryBytes = bytes.length;
  }

  /** What is left of much must not keep the memory of all. */
  #compact(): void {
    if (this.#memoryBytes > UNCOUNTED_BYTES_MAX && 2 * this.#held.length < this.#memoryBytes)
      this.#hold(Buffer.concat([this.#held]));
  }

  /** Sends what every client of HTTP/1.1 passes over (RFC 9110 15.2). One of HTTP/1.0 gets what could be answered at once. */
  #probe(nowMs: number, probeMs: number): void {
    const exchange = this.#exchange;
    if (exchange === undefined || exchange.isAnswered || this.#body !== undefined) return;
    if (!exchange.headers.isHttp11) return this.destroy();
    this.#out.write(CONTINUE);
    this.#halfClose = { probeAtMs: nowMs + probeMs, probeMs };
  }

  /** `isFirst`: what is held came just now. */
  #readRequest(isFirst = false): void {
    // The permit of an answer is given back before the next request asks for one.
    if (this.#out.isAwaited) this.#out.endTurn();
    const read = readRequestHead(this.#held);
    this.#waitsFor = read.kind === 'more' ? 'more' : 'nothing';
    const isWhole = isWholeRequest(read, this.#held);
    // Of a request that has come whole nobody asks when it began.
    if (isFirst && !isWhole) this.#sinceMs = this.#listener.clock.monotonic();
    if (read.kind === 'bad') return this.#refuse(read);
    // It must not keep the memory of what came before it.
    if (read.kind === 'more') return this.#compact();
    const exchange = new Exchange(read.head, this, this.#listener.bodies, this.#sinceMs);
    // Of a body under way all memory counts that it is a part of.
    const rest = isWhole ? readFrom(this.#held, read.end) : this.#held.subarray(read.end);
    this.#held = EMPTY;
    this.#exchange = exchange;
    if (rest.length > 0) this.#offer(exchange, rest);
    if (this.#exchange !== exchange) return;
    this.#answer(exchange);
    // Whose it is may have to be looked up first.
    if (!exchange.isCounted) exchange.count('unknown');
  }

  /** Much in chunks waits for its turn: a chunk may be a byte. */
  #offer(exchange: Exchange, bytes: Buffer): void {
    if (exchange.headers.framing === 'chunked' && bytes.length > PART_BYTES_MAX) this.#held = bytes;
    else this.#takeBody(exchange, bytes);
  }

  /** Takes what the bytes hold of a body; of one in chunks a part. */
  #takeBody(exchange: Exchange, bytes: Buffer): void {
    const end = exchange.headers.framing === 'chunked' ? PART_BYTES_MAX : bytes.length;
    const rest = exchange.take(end < bytes.length ? bytes.subarray(0, end) : bytes);
    if (rest === 'bad') return this.#refuse({ kind: 'bad', status: 400 });
    this.#held = end < bytes.length ? bytes.subarray(end - rest.length) : rest;
    if (exchange.isWhole) {
      this.#listener.intake.took(this, exchange.bodyBytes);
      this.#next(exchange);
    } else if (exchange.isAnswered && exchange.isEndless) this.#end();
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
    const { body = EMPTY, status } = response;
    this.#isStranger = !exchange.hasKey && status >= 400 && status < 500;
    this.#refusals = this.#isStranger ? this.#refusals + 1 : 0;
    const isStream = !(body instanceof Uint8Array);
    const isHead = exchange.method === 'HEAD';
    const length = isStream || (isHead && response.body === undefined) ? response.length : body.length;
    const isKept = this.#isKept(exchange, response, length);
    const head = responseHead(exchange.headers, response, length, isKept, this.#listener.date());
    if (isStream && !isHead) {
      this.#body = body;
      this.#out.cork(head);
      return void this.#stream(exchange, body, response, isKept).catch(() => this.destroy());
    }
    if (isStream) body.cancel();
    this.#out.add(head, isStream || isHead ? EMPTY : body);
    this.#finish(exchange, isKept);
  }

  #isKept(exchange: Exchange, { fields }: RpcResponse, length: number | undefined): boolean {
    const { headers, isWhole, leftBytes } = exchange;
    if (fields['connection'] === 'close' || this.#listener.isDraining()) return false;
    if (this.#refusals >= REFUSALS_MAX || (this.#halfClose !== undefined && this.#held.length === 0))
      return false;
    // Who waits for a 100 in vain may send the next request in place of the body (RFC 9110 10.1.1).
    if (!isWhole && (headers.expectsContinue || leftBytes > READ_OUT_BYTES_MAX)) return false;
    return headers.keepsAlive && (length !== undefined || headers.isHttp11);
  }

  /** Passes a stream on as it comes. Unless it was whole, the connection ends without the end of the answer. */
  async #stream(
    exchange: Exchange,
    body: StreamBody,
    { length, onEnd }: RpcResponse,
    isKept: boolean,
  ): Promise<void> {
    const isChunked = length === undefined && exchange.headers.isHttp11;
    let left = length ?? Infinity;
    let last = EMPTY;
    const end = await body.pipe((piece) => {
      if (isChunked) return this.#out.writeChunk(piece);
      const lastAt = Math.max(0, left - 1);
      left -= piece.length;
      if (left > 0 || piece.length === 0) return this.#out.write(piece);
      // The last byte waits, and nothing follows it: an answer that turns out to be none at its end must not look whole.
      last = Buffer.from(piece.subarray(lastAt, lastAt + 1));
      return this.#out.write(piece.subarray(0, lastAt));
    });
    this.#body = undefined;
    onEnd?.(end);
    if (this.#state === 'closed') return;
    const isWhole = end.kind === 'complete' && (length === undefined || left === 0);
    this.#out.write(isChunked && isWhole ? LAST_CHUNK : isWhole ? last : EMPTY);
    if (isWhole) return this.#finish(exchange, isKept);
    // Where the end shows by itself, what has been written still arrives.
    if ((isChunked || length !== undefined) && !this.#out.isUnread) this.#end();
    else this.destroy();
  }

  /** The answer has been written: the next request, or the end of the connection. */
  #finish(exchange: Exchange, isKept: boolean): void {
    const nowMs = this.#listener.clock.monotonic();
    exchange.answeredMs = nowMs;
    this.#out.awaitSent(exchange.sending);
    if (!isKept) return this.#end();
    if (exchange.isWhole) return this.#next(exchange, nowMs);
    exchange.refuseBody();
    this.#pace();
  }

  /** Goes on to the next request once this one has come whole and its answer has left: a caller that does not read is not answered on. */
  #next(exchange: Exchange, nowMs?: number): void {
    if (!exchange.isAnswered || !exchange.isWhole || this.#out.isUnread) return;
    exchange.release();
    this.#exchange = undefined;
    this.#holder = exchange.holder;
    this.#isNew = false;
    this.#sinceMs = nowMs ?? this.#listener.clock.monotonic();
    if (this.#listener.isDraining()) this.#end();
    else this.#goOn();
  }

  #refuse({ status }: BadHead): void {
    const exchange = this.#exchange;
    this.#isStranger ||= exchange?.hasKey !== true;
    exchange?.leave();
    if (exchange?.isAnswered !== true) this.#out.write(Buffer.from(bareHead(status)));
    this.#end();
  }

  /** Ends the connection when all has been written. */
  #end(): void {
    if (this.#state !== 'open') return;
    if (this.#exchange !== undefined) this.#out.awaitSent(this.#exchange.sending);
    this.#out.endTurn();
    this.#state = 'ending';
    if (this.#exchange !== undefined) this.#holder = this.#exchange.holder;
    this.#exchange?.release();
    this.#exchange = undefined;
    this.#held = EMPTY;
    this.#count();
    if (!this.#out.isUnread) this.#linger();
  }

  /** Says that no more comes, and reads on a while: what a caller has not read is lost when bytes meet a closed socket. */
  #linger(): void {
    this.#state = 'lingering';
    if (this.#halfClose !== undefined) return this.destroy();
    this.#sinceMs = this.#out.stuckSinceMs = this.#listener.clock.monotonic();
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
    const isEnough =
      this.#isStopped || this.#held.length > WAITING_BYTES_MAX || (isBody && exchange.isWaiting);
    if (isEnough === this.#isPaused) return;
    this.#isPaused = isEnough;
    if (isEnough) this.#socket.pause();
    else this.#socket.resume();
  }
}

function isWholeRequest(read: ReturnType<typeof readRequestHead>, { length }: Buffer): boolean {
  if (read.kind !== 'head') return false;
  const { framing } = read.head;
  return framing !== 'chunked' && framing <= length - read.end;
}
