import type { Clock } from '../../shared/clock.ts';
import { EMPTY, readFrom } from '../http/slab.ts';
import type { StreamBody } from '../http/stream-body.ts';
import { Outgoing } from '../http/outgoing.ts';
import { type BadHead, readRequestHead } from '../http/request-head.ts';
import { bareHead, responseHead } from '../http/response-head.ts';
import { atEndOfTurn } from '../http/turns.ts';
import type { BodyBudget, Holder, Share } from './body-budget.ts';
import type { CallerRequest } from './caller-request.ts';
import {
  awaitsBody,
  awaitsTurn,
  type CallerEvent,
  type CallerFacts,
  type CallerState,
  next,
  READ_OUT_BYTES_MAX,
} from './connection-state.ts';
import { compact, Exchange, UNCOUNTED_BYTES_MAX, WAITING_BYTES_MAX } from './exchange.ts';
import { RpcResponse } from './rpc.ts';
import type { Intake } from './intake.ts';
import { awaitWork } from './turn-work.ts';
import { rpcResponseOf } from './web.ts';

/** A route's answer, as it is or as a `Response` that is yet to be read. */
type ConnectionAnswer = RpcResponse | Response;

/** The listener as a connection knows it. */
export type Listener = Readonly<{
  clock: Clock;
  bodies: BodyBudget;
  intake: Intake;
  /** A body must have come whole so long after its head, and a next request must begin so long after an answer. */
  quietMs: number;
  answer(request: CallerRequest): ConnectionAnswer | Promise<ConnectionAnswer>;
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
/** Bytes that are walked at once of a body in chunks. */
const PART_BYTES_MAX = 16_384;
/** A caller who has ended its sending side is probed so long after that, and after twice the time again. */
const PROBE_MS = 250;
/** How long a caller may take to close a connection that was ended by an answer, or to send more (RFC 9112 9.6). */
const LINGER_MS = 2_000;

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');
/** Where no error hook of the app has answered. */
const BROKEN = new RpcResponse({ status: 500, fields: {} });

type State = CallerState<Exchange>;
type Event = CallerEvent<Exchange>;

/** Whose the last request was, of a valid key or not refused: `known`; else so many refused ones came in a row. */
type Standing = 'new' | 'known' | number;

/**
 * The socket of a caller, driven through the states of `connection-state.ts`. Beside them it may be paused, and its caller may have
 * ended its sending side.
 */
export class CallerConnection implements CallerFacts {
  readonly #socket: Bun.Socket<CallerConnection>;
  readonly #listener: Listener;
  readonly #out: Outgoing;
  /** The part of the memory for bodies that `ahead` takes. */
  readonly #share: Share;
  #state: State;
  /** Whether it waits for its turn. */
  #isQueued = false;
  #isPaused = false;
  /** Whether nothing is read in this turn (`intake.ts`). */
  #isStopped = false;
  #standing: Standing = 'new';
  /** Whose the last request was. */
  #holder: Holder = 'keyless';
  /** There since the caller has ended its sending side: when it is probed, and after what time once more. */
  #halfClose: Readonly<{ probeAtMs: number; probeMs: number }> | undefined;

  constructor(socket: Bun.Socket<CallerConnection>, listener: Listener) {
    this.#socket = socket;
    this.#listener = listener;
    this.#out = new Outgoing(socket, listener.clock, () => this.destroy());
    this.#share = listener.bodies.share();
    this.#state = { kind: 'idle', ahead: EMPTY, sinceMs: listener.clock.monotonic() };
  }

  get peer(): Bun.SocketAddress | null {
    if (this.#state.kind === 'closed') return null;
    const { remoteAddress: address, remoteFamily: family, remotePort: port } = this.#socket;
    return { address, family, port };
  }

  /**
   * Whether it is given up where descriptors are short: it waits for a request, or for the rest of one. Who has no valid
   * key is not waited for while it does not read its refusal either; who has one gets the time of a head for a body.
   */
  get isSpare(): boolean {
    const state = this.#state;
    if (state.kind === 'queued' || state.kind === 'answering') return false;
    if ('exchange' in state)
      return !state.exchange.hasKey || this.#listener.clock.monotonic() - state.sinceMs >= STRANGER_MS;
    return this.#isIdle() || typeof this.#holder !== 'number';
  }

  // What `next` asks of a connection, read only where it decides.
  get nowMs(): number {
    return this.#listener.clock.monotonic();
  }
  get isUnread(): boolean {
    return this.#out.isUnread;
  }
  get isHalfClosed(): boolean {
    return this.#halfClose !== undefined;
  }
  get isDraining(): boolean {
    return this.#listener.isDraining();
  }

  /** The account whose body has not come whole. */
  get uploader(): number | undefined {
    const exchange = exchangeIn(this.#state);
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
    const state = this.#state;
    if (state.kind === 'idle') {
      const isFirst = state.ahead.length === 0 && this.#standing !== 'new';
      this.#read(joined(state.ahead, bytes), state.sinceMs, isFirst);
    } else if (awaitsBody(state)) this.#offer(state.exchange, bytes, state.sinceMs);
    else if ('ahead' in state) this.#go({ kind: 'ahead', ahead: joined(state.ahead, bytes) });
    else return this.#go({ kind: 'thrown-away', bytes: bytes.length });
    this.#goOn();
  }

  /**
   * The caller has ended its sending side. Whether it has left altogether shows when something is written to it, by a reset;
   * until then a request that came whole is answered (RFC 9112 9.6), and an answer that takes time is preceded by a 100.
   */
  onHalfClose(): void {
    this.#halfClose = { probeAtMs: this.#listener.clock.monotonic() + PROBE_MS, probeMs: PROBE_MS };
    this.#go({ kind: 'half-closed' });
  }

  onDrain(): void {
    // A stream goes on by itself.
    if (!this.#out.drain() || exchangeIn(this.#state) !== undefined) return;
    this.#go({ kind: 'drained' });
    this.#goOn();
  }

  onClose(): void {
    this.#go({ kind: 'gone' });
  }

  /** Writes the answers of a turn together (`turns.ts`). */
  endTurn(): void {
    this.#out.endTurn();
    if (this.#out.isUnread) this.#go({ kind: 'full' });
  }

  /** Ends what has been waited for too long, and probes who may have left; called twice a second. */
  onTick(nowMs: number): void {
    const { isUnread, stuckSinceMs } = this.#out;
    const isStuck = isUnread && nowMs - stuckSinceMs >= this.#patienceMs();
    if (isStuck || nowMs >= this.#deadlineMs()) this.destroy();
    else if (this.#halfClose !== undefined && nowMs >= this.#halfClose.probeAtMs)
      this.#probe(nowMs, 2 * this.#halfClose.probeMs);
  }

  #patienceMs(): number {
    return this.#standing === 'known' ? this.#listener.quietMs : STRANGER_MS;
  }

  /** When its caller must have sent, or closed. Where it must read, `Outgoing` has the time. */
  #deadlineMs(): number {
    const state = this.#state;
    if (!('sinceMs' in state)) return Infinity;
    if (state.kind === 'lingering')
      return Math.min(state.sinceMs + LINGER_MS, state.fromMs + this.#patienceMs());
    if ('exchange' in state)
      return state.sinceMs + (state.exchange.hasKey ? this.#listener.quietMs : STRANGER_MS);
    return state.sinceMs + (state.ahead.length > 0 ? STRANGER_MS : this.#patienceMs());
  }

  /** Whether it waits for a request, or for the rest of a head. */
  #isIdle(): boolean {
    return this.#state.kind === 'idle' && this.#out.isWritten;
  }

  /** Ends it unless an answer is waited for, which ends it by itself. */
  endWhenAnswered(): void {
    const { kind } = this.#state;
    if (this.#isIdle()) this.destroy();
    else if (kind !== 'receiving' && kind !== 'answering') this.#go({ kind: 'end' });
  }

  /** Ends the connection now. */
  destroy(): void {
    this.#go({ kind: 'give-up' });
  }

  /** Reads the body of the request under way. */
  readOn(isExpected: boolean): void {
    if (isExpected) this.#out.write(CONTINUE);
    this.#pace();
  }

  /** Goes on with what is ahead: a part of a body, or one request. Gives what that cost (`turn-work.ts`). */
  workOn(): number {
    this.#isQueued = false;
    const state = this.#state;
    if (!awaitsTurn(state)) return 1;
    // What is left of much must not keep the memory of all.
    const ahead = compact(state.ahead);
    if (state.kind === 'queued') this.#read(ahead, state.sinceMs);
    else this.#receive(state.exchange, ahead, state.sinceMs);
    const left = aheadIn(this.#state).length;
    this.#goOn();
    return 1 + ((ahead.length - left) >> 10);
  }

  /** Does what the state after an event begins with. */
  #go(event: Event): void {
    const before = this.#state;
    const after = next(before, event, this);
    this.#state = after;
    const exchange = exchangeIn(before);
    if (exchange !== undefined && exchangeIn(after) === undefined) {
      this.#holder = exchange.holder ?? 'unknown';
      if (event.kind === 'answered' || before.kind === 'discarding') exchange.release();
      else exchange.leave();
    }
    if (after.kind === before.kind) return;
    if (after.kind === 'ending') this.#end();
    else if (after.kind === 'lingering') this.#linger();
    else if (after.kind === 'closed') this.#close(event.kind === 'gone', exchange !== undefined);
  }

  /** Has what is ahead read in its turn, as soon as that can be. */
  #goOn(): void {
    if (!this.#isQueued && awaitsTurn(this.#state)) {
      this.#isQueued = true;
      awaitWork(this);
    }
    this.#count();
    this.#pace();
  }

  /** Counts what is ahead beyond what every connection may. */
  #count(): void {
    const ahead = aheadIn(this.#state);
    const memoryBytes = ahead.length === 0 ? 0 : ahead.buffer.byteLength;
    const holder = exchangeIn(this.#state)?.holder ?? this.#holder;
    if (!this.#share(holder, memoryBytes <= UNCOUNTED_BYTES_MAX ? 0 : memoryBytes)) this.destroy();
  }

  /** Sends what every client of HTTP/1.1 passes over (RFC 9110 15.2). One of HTTP/1.0 gets what could be answered at once. */
  #probe(nowMs: number, probeMs: number): void {
    const exchange = this.#awaited();
    if (exchange === undefined || exchange.stream !== undefined) return;
    if (!exchange.headers.isHttp11) return this.destroy();
    this.#out.write(CONTINUE);
    this.#halfClose = { probeAtMs: nowMs + probeMs, probeMs };
  }

  /** The request that has not been answered, or not all. */
  #awaited(): Exchange | undefined {
    const state = this.#state;
    return state.kind === 'receiving' || state.kind === 'answering' ? state.exchange : undefined;
  }

  /** Reads a request; `isFirst`: its first bytes came just now. */
  #read(ahead: Buffer, sinceMs: number, isFirst = false): void {
    // The permit of an answer is given back before the next request asks for one.
    if (this.#out.isAwaited) this.endTurn();
    if (this.#state.kind === 'unread') return this.#go({ kind: 'ahead', ahead });
    const read = readRequestHead(ahead);
    if (read.kind === 'bad') return this.#refuse(read);
    const isWhole = isWholeRequest(read, ahead);
    // Of a request that has come whole nobody asks when it began.
    if (isFirst && !isWhole) sinceMs = this.#listener.clock.monotonic();
    // It must not keep the memory of what came before it.
    if (read.kind === 'more') return this.#go({ kind: 'part', ahead: compact(ahead), sinceMs });
    const exchange = new Exchange(read.head, this, this.#listener.bodies);
    // Of a body under way all memory counts that it is a part of.
    this.#offer(exchange, isWhole ? readFrom(ahead, read.end) : ahead.subarray(read.end), sinceMs);
    if (this.#awaited() !== exchange) return;
    this.#answer(exchange);
    // Whose it is may have to be looked up first.
    if (exchange.holder === undefined) exchange.count('unknown');
  }

  /** Much in chunks waits for its turn: a chunk may be a byte. */
  #offer(exchange: Exchange, bytes: Buffer, sinceMs: number): void {
    if (exchange.headers.framing === 'chunked' && bytes.length > PART_BYTES_MAX)
      this.#go({ kind: 'head', exchange, ahead: bytes, sinceMs });
    else this.#receive(exchange, bytes, sinceMs);
  }

  /** Takes what the bytes hold of a body; of one in chunks a part. */
  #receive(exchange: Exchange, bytes: Buffer, sinceMs: number): void {
    const end = exchange.headers.framing === 'chunked' ? PART_BYTES_MAX : bytes.length;
    const rest = exchange.receive(end < bytes.length ? bytes.subarray(0, end) : bytes);
    if (rest === 'bad') return this.#refuse({ kind: 'bad', status: 400 });
    const ahead = end < bytes.length ? bytes.subarray(end - rest.length) : rest;
    if (!exchange.isWhole) this.#go({ kind: 'head', exchange, ahead, sinceMs });
    else {
      this.#listener.intake.took(this, exchange.bodyBytes);
      this.#go({ kind: 'request', exchange, ahead });
    }
    if (this.#state.kind === 'discarding' && exchange.bodyBytes > READ_OUT_BYTES_MAX)
      this.#go({ kind: 'end' });
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

  #await(exchange: Exchange, answer: Promise<ConnectionAnswer>): void {
    answer.then(
      (each) => this.#respond(exchange, each),
      () => this.#respond(exchange, BROKEN),
    );
  }

  /** An unexpected error costs this connection, and not the process. */
  #respond(exchange: Exchange, response: ConnectionAnswer): void {
    if (response instanceof Response) return this.#await(exchange, rpcResponseOf(response, exchange.method));
    try {
      const { body } = response;
      if (this.#awaited() === exchange) this.#begin(exchange, response);
      else if (body !== undefined && !(body instanceof Uint8Array)) body.cancel();
    } catch {
      this.destroy();
    }
  }

  /** A small answer leaves at the end of the turn, a large one at once, a stream as it comes; that to HEAD is a head alone. */
  #begin(exchange: Exchange, response: RpcResponse): void {
    const { body = EMPTY, status } = response;
    const isRefused = !exchange.hasKey && status >= 400 && status < 500;
    this.#standing = !isRefused ? 'known' : typeof this.#standing === 'number' ? this.#standing + 1 : 1;
    const isStream = !(body instanceof Uint8Array);
    const isHead = exchange.method === 'HEAD';
    const length = isStream || (isHead && response.body === undefined) ? response.length : body.length;
    const isKept = this.#isKept(exchange, response, length);
    const head = responseHead(exchange.headers, response, length, isKept, this.#listener.date());
    if (isStream && !isHead) {
      exchange.stream = body;
      this.#out.cork(head);
      return void this.#stream(exchange, body, response, isKept).catch(() => this.destroy());
    }
    if (isStream) body.cancel();
    this.#out.add(head, isStream || isHead ? EMPTY : body);
    atEndOfTurn(this);
    this.#finish(exchange, isKept);
  }

  #isKept(exchange: Exchange, { fields }: RpcResponse, length: number | undefined): boolean {
    const { headers, isWhole, leftBytes } = exchange;
    if (fields['connection'] === 'close' || this.#listener.isDraining() || this.#standing === REFUSALS_MAX)
      return false;
    if (this.#halfClose !== undefined && aheadIn(this.#state).length === 0) return false;
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
    exchange.stream = undefined;
    onEnd?.(end);
    if (this.#awaited() !== exchange) return;
    const isWhole = end.kind === 'complete' && (length === undefined || left === 0);
    this.#out.write(isChunked && isWhole ? LAST_CHUNK : isWhole ? last : EMPTY);
    if (isWhole) return this.#finish(exchange, isKept);
    // Where the end shows by itself, what has been written still arrives.
    if ((isChunked || length !== undefined) && !this.#out.isUnread) this.#go({ kind: 'end' });
    else this.destroy();
  }

  /** The answer has been written: the next request, or the end of the connection. */
  #finish(exchange: Exchange, isKept: boolean): void {
    this.#out.awaitSent(exchange.sending);
    if (!exchange.isWhole) exchange.refuseBody();
    this.#go({ kind: 'answered', isKept });
    this.#goOn();
  }

  #refuse({ status }: BadHead): void {
    const exchange = exchangeIn(this.#state);
    if (exchange?.stream !== undefined) return this.destroy();
    if (exchange?.hasKey !== true) this.#standing = 1;
    if (this.#state.kind !== 'discarding') this.#out.write(Buffer.from(bareHead(status)));
    this.#go({ kind: 'end' });
  }

  #end(): void {
    this.#out.endTurn();
    this.#count();
    if (!this.#out.isUnread) this.#go({ kind: 'drained' });
  }

  #linger(): void {
    this.#pace();
    this.#socket.shutdown();
  }

  /** A reset loses what the system has not delivered yet, so only what is under way is cut by one. */
  #close(isGone: boolean, isUnderWay: boolean): void {
    const isCut = isUnderWay || this.#out.isUnread;
    this.#listener.onClose(this);
    this.#count();
    this.#out.close();
    if (isGone) return;
    if (isCut) return void this.#socket.terminate();
    this.#socket.shutdown();
    this.#socket.close();
  }

  /** Stops reading while enough waits: requests behind the one under way, or a body that was not asked for. */
  #pace(): void {
    const state = this.#state;
    if (state.kind === 'closed') return;
    const isEnough =
      this.#isStopped ||
      aheadIn(state).length > WAITING_BYTES_MAX ||
      (state.kind === 'receiving' && state.exchange.isWaiting);
    if (isEnough === this.#isPaused) return;
    this.#isPaused = isEnough;
    if (isEnough) this.#socket.pause();
    else this.#socket.resume();
  }
}

// By the kind: to ask objects of nine shapes for a member costs more.
function exchangeIn(state: State): Exchange | undefined {
  const { kind } = state;
  return kind === 'receiving' || kind === 'answering' || kind === 'discarding' ? state.exchange : undefined;
}

function aheadIn(state: State): Buffer {
  const { kind } = state;
  return kind === 'ending' || kind === 'lingering' || kind === 'closed' ? EMPTY : state.ahead;
}

function joined(ahead: Buffer, bytes: Buffer): Buffer {
  return ahead.length === 0 ? bytes : Buffer.concat([ahead, bytes]);
}

function isWholeRequest(read: ReturnType<typeof readRequestHead>, { length }: Buffer): boolean {
  if (read.kind !== 'head') return false;
  const { framing } = read.head;
  return framing !== 'chunked' && framing <= length - read.end;
}
