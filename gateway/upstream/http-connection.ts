import { unreachable } from '../../shared/brand.ts';
import type { Clock } from '../../shared/clock.ts';
import type { MethodClass } from '../../shared/config/methods.ts';
import { BodyDecoder } from '../http/body-decoder.ts';
import { readHead, type ResponseHead } from '../http/response-head.ts';
import { EMPTY, readFrom } from '../http/slab.ts';
import { type CutReason, LEFT_OUT, LOST, type StreamEnd, type WritePiece } from '../http/stream-body.ts';
import { atEndOfTurn, awaitTurn, free, moved, readNow } from '../http/turns.ts';
import { ReaderPace } from './reader-pace.ts';

/** A body under way. It must be read to its end, by `more` or `pipe`, or cancelled, or its connection stays taken. */
export type ReplyBody = Pick<Body, 'pieces' | 'end' | 'more' | 'offer' | 'pipe' | 'cancel'> &
  Partial<Pick<Body, 'distrust' | 'noteRead' | 'noteUnread'>>;

export type HttpReply = Readonly<{ kind: 'reply'; head: ResponseHead; body: ReplyBody }>;

/** Why no reply came. */
export type NoReply =
  /** No connection was made: the backend cannot have seen a byte of the request. */
  | { readonly kind: 'unsent'; readonly reason: string }
  /**
   * The backend may have acted on it, unless it is `unwritten`. `stale`: a connection used before closed without a byte of
   * an answer to it; a new one may do better.
   */
  | {
      readonly kind: 'no-answer';
      readonly reason: string;
      readonly stale?: boolean;
      readonly unwritten?: boolean;
    };

/** Waits for the outcome of one exchange. One of the first two is called, once. */
export type ExchangeHandler = Readonly<{
  /** The body of a small reply as nearly all come: 200, JSON, not encoded, in one read. Without it every reply comes by `onOutcome`. */
  onSmallReply?(body: Buffer, cameMs: number, connection: Connection): void;
  onOutcome(outcome: HttpReply | NoReply): void;
  /** Absent: a call of our own. */
  accountId?: number;
  /** Absent: light. */
  kind?: MethodClass;
  /** Whether another backend may answer it, now that its own is given up. */
  hasOther?(): boolean;
  /** Whether the reply is no longer needed, so that its connection may be closed; called by `onTick`. */
  hasLeft?(): boolean;
}>;

/** The client that a connection belongs to. */
export type ConnectionOwner = Readonly<{
  clock: Clock;
  /** A reply has ended and the connection may carry another request. */
  onIdle(connection: Connection): void;
  onClose(connection: Connection): void;
}>;

/** The reason of what was not sent because this process has no descriptor left for a connection: no backend's fault. */
export const NO_DESCRIPTORS = 'this process has no file descriptor left';

/**
 * Which calls without a reply are given up: reads that another backend may answer; scans too; with these all other reads;
 * all; `lost`: reads to repeat.
 */
export type Surrender = 'reads' | 'scans' | 'hung' | 'all' | 'lost';

/**
 * Whether a call is given up. A send stays: it may have been taken. At a backend that hangs a scan stays that no other may
 * answer: a node may have no core left for its probes while it computes one.
 */
export function isGivenUp(call: Pick<ExchangeHandler, 'kind' | 'hasOther'>, what: Surrender): boolean {
  if (call.kind === 'write') return false;
  if (what === 'all') return true;
  if (call.kind === 'scan') return (what === 'scans' || what === 'hung') && call.hasOther?.() === true;
  return what === 'hung' || what === 'lost' || call.hasOther?.() === true;
}

/** Where a connection is in its one exchange at a time. */
export type Phase<B> =
  | { readonly kind: 'idle' }
  /** Its request is written at the end of the turn. */
  | Readonly<{ kind: 'queued'; handler: ExchangeHandler; request: Buffer }>
  /** `bytes` have come of the head under way, `passedBytes` of interim ones before it. */
  | Readonly<{ kind: 'sent'; handler: ExchangeHandler; bytes: Buffer; passedBytes: number }>
  | B
  | { readonly kind: 'closed' };

export type PhaseEvent<B> =
  | Readonly<{ kind: 'request'; handler: ExchangeHandler; request: Buffer }>
  | { readonly kind: 'written' }
  /** Bytes came that are no whole head yet. */
  | Readonly<{ kind: 'part'; bytes: Buffer; passedBytes: number }>
  | Readonly<{ kind: 'head'; body: B }>
  /** The reply is whole. */
  | { readonly kind: 'ended' }
  | { readonly kind: 'closed' };

const IDLE = { kind: 'idle' } as const;
const WRITTEN = { kind: 'written' } as const;
const ENDED = { kind: 'ended' } as const;
const CLOSED = { kind: 'closed' } as const;

/**
 * The phases of a connection; `B` is what stands for a body. Where no arrow is, the phase stays.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> idle
 *   idle --> queued: request
 *   queued --> sent: written
 *   sent --> sent: part of a head
 *   sent --> body: head
 *   sent --> idle: ended, as a small reply that came whole
 *   body --> idle: ended
 *   idle --> closed: closed, also where it may carry no other request
 *   queued --> closed: closed, and nothing has left
 *   sent --> closed: closed, and there is no answer
 *   body --> closed: closed, and the body is cut
 * ```
 */
export function nextPhase<B extends { readonly kind: 'body' }>(
  phase: Phase<B>,
  event: PhaseEvent<B>,
): Phase<B> {
  switch (event.kind) {
    case 'request':
      if (phase.kind !== 'idle') return phase;
      return { kind: 'queued', handler: event.handler, request: event.request };
    case 'written':
      if (phase.kind !== 'queued') return phase;
      return { kind: 'sent', handler: phase.handler, bytes: EMPTY, passedBytes: 0 };
    case 'part':
      return phase.kind === 'sent' ? { ...event, kind: 'sent', handler: phase.handler } : phase;
    case 'head':
      return phase.kind === 'sent' ? event.body : phase;
    case 'ended':
      return phase.kind === 'sent' || phase.kind === 'body' ? IDLE : phase;
    case 'closed':
      return CLOSED;
    default:
      return unreachable(event);
  }
}

/** An account's exchange under way, and its answer as soon as that has begun. */
export type AccountCall = Readonly<{
  accountId: number;
  answer?: Pick<Body, 'unreadSinceMs' | 'isStopped' | 'isBehind' | 'readPerMs' | 'evict'>;
}>;

class Body extends ReaderPace {
  readonly kind = 'body';
  readonly head: ResponseHead;
  readonly decoder: BodyDecoder;
  /** Its `onOutcome` is called at the body's first byte, because until then another backend may be tried. */
  readonly handler: ExchangeHandler;
  isHanded = false;
  readonly #connection: Connection;
  /** Pieces that are not piped yet. */
  readonly pieces: Buffer[] = [];
  isPiped = false;
  write: WritePiece = (piece) => void this.pieces.push(piece);
  end: StreamEnd | undefined;
  /** Lets go of it for a call of another account. */
  evict: () => void = () => this.cancel('evicted');
  /** There while `more` is waited for. */
  wakeMore: (() => void) | undefined;
  readonly #ended = Promise.withResolvers<StreamEnd>();
  readonly #cut = Promise.withResolvers<void>();

  constructor(head: ResponseHead, handler: ExchangeHandler, connection: Connection, clock: Clock) {
    super(clock, connection.activeAtMs);
    this.head = head;
    this.decoder = new BodyDecoder(head.framing);
    this.handler = handler;
    this.#connection = connection;
  }

  /** A reader may take it from now on; `evict` cancels the answer that has begun with it. */
  offer(evict: () => void): void {
    this.evict = evict;
    this.noteOffered();
  }

  /** Whether nothing of it has left, and its next piece is waited for. */
  get isAwaited(): boolean {
    return !this.isPiped && (!this.isHanded || this.wakeMore !== undefined);
  }

  finish(end: StreamEnd): void {
    this.end = end;
    this.wakeMore?.();
    if (end.kind === 'cut') this.#cut.resolve();
    this.#ended.resolve(end);
  }

  /** Reads on until another piece has come or the body has ended, at the latest when the reply is overdue. Never rejects. */
  more(): Promise<unknown> {
    if (this.end !== undefined) return this.#ended.promise;
    this.#connection.readOn(this);
    return new Promise<void>((resolve) => (this.wakeMore = resolve));
  }

  /** Hands every piece to `write`, at most one ahead of a promise it gave. Single-use. Never rejects. */
  async pipe(write: WritePiece): Promise<StreamEnd> {
    this.noteTaken();
    // Read anew each time: the runtime hands over what it has of a paused socket when the backend resets it.
    for (let piece = this.pieces.shift(); piece !== undefined; piece = this.pieces.shift()) {
      const wait = write(piece);
      if (!(wait instanceof Promise)) continue;
      this.noteUnread();
      await Promise.race([wait.catch(() => undefined), this.#cut.promise]); // a reader that fails cancels by itself
      this.noteRead();
    }
    this.isPiped = true;
    this.write = write;
    if (this.end === undefined) this.#connection.readOn(this);
    return this.#ended.promise;
  }

  /** Lets go of it, unread, and of its connection, unless that has another request by now: what comes next may be late answers to others. */
  cancel(reason: CutReason = 'cancelled'): void {
    if (this.end === undefined || this.#connection.isIdle) this.#connection.destroy(reason);
  }

  /** It was no answer to its request: what comes next over its connection may be late answers to others. */
  distrust(): void {
    this.#connection.destroy('bad-framing');
  }
}

/**
 * One HTTP/1.1 connection to a backend, carrying one exchange at a time. A class: it has an identity, changes with
 * every byte, and ends. Nothing is read from the socket while a reader is behind, so at most one read is held.
 */
export class Connection {
  readonly #socket: Bun.Socket<unknown>;
  readonly #isTls: boolean;
  readonly #owner: ConnectionOwner;
  #phase: Phase<Body> = IDLE;
  #unwritten: Buffer | undefined;
  #waiting = false;
  #exchanges = 0;
  /** When the last byte came or went, on the monotonic clock; `onTick` judges by it. */
  activeAtMs = 0;
  /** When the reply under way must have come, as far as its handler and `more` wait for it; a reader bounds its own time. */
  #dueAtMs = 0;

  constructor(socket: Bun.Socket<unknown>, isTls: boolean, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#isTls = isTls;
    this.#owner = owner;
  }

  /** The exchange under way, when it is an account's. */
  get call(): AccountCall | undefined {
    const phase = this.#phase;
    if (phase.kind === 'idle' || phase.kind === 'closed') return undefined;
    const { accountId } = phase.handler;
    if (accountId === undefined) return undefined;
    return phase.kind === 'body' ? { accountId, answer: phase } : { accountId };
  }

  get isIdle(): boolean {
    return this.#phase.kind === 'idle';
  }

  get #isClosed(): boolean {
    return this.#phase.kind === 'closed';
  }

  /** Sends `length` bytes of `message`, which may be overwritten afterwards; a reply's head is awaited until `dueAtMs`. */
  exchange(message: Buffer, length: number, handler: ExchangeHandler, nowMs: number, dueAtMs: number): void {
    if (this.#phase.kind !== 'idle')
      return handler.onOutcome({ kind: 'no-answer', reason: 'the connection is not idle', stale: true });
    const request = Buffer.allocUnsafe(length);
    message.copy(request, 0, 0, length);
    this.#move({ kind: 'request', handler, request });
    this.#exchanges++;
    this.activeAtMs = nowMs;
    this.#dueAtMs = dueAtMs;
    atEndOfTurn(this);
  }

  /** Writes the request that was given to `exchange`, unless the connection has closed meanwhile. */
  endTurn(): void {
    const phase = this.#phase;
    if (phase.kind !== 'queued') return;
    this.#write(phase.request);
    this.#move(WRITTEN);
  }

  /** Cuts what is overdue, or silent for `idleMs`; called a few times a second. */
  onTick(nowMs: number, idleMs: number): void {
    const phase = this.#phase;
    if (phase.kind === 'idle' || phase.kind === 'closed') return;
    const isDue = nowMs >= this.#dueAtMs;
    if (phase.kind !== 'body') {
      if (phase.handler.hasLeft?.()) this.destroy('cancelled');
      else if (isDue) this.destroy('stalled');
      return;
    }
    if (nowMs - phase.waitingSinceMs >= idleMs) return this.destroy('unread');
    // While its reader is behind, silence is not the backend's.
    const isSilent = phase.isPiped && !this.#waiting && nowMs - this.activeAtMs >= idleMs;
    if (isSilent || (phase.isAwaited && isDue)) this.destroy('stalled');
  }

  /** Fails a call of whose reply nothing has left, if it is given up and nothing of it came or went from `beforeMs` on. */
  abandon(what: Surrender, beforeMs: number): void {
    const phase = this.#phase;
    if (phase.kind === 'idle' || phase.kind === 'closed') return;
    const isAwaited = phase.kind !== 'body' || phase.isAwaited;
    if (isAwaited && this.activeAtMs < beforeMs && isGivenUp(phase.handler, what))
      this.destroy(what === 'lost' ? LOST : LEFT_OUT);
  }

  /** Ends the connection now; what is under way is cut for `reason`. */
  destroy(reason: CutReason, headReason?: string): void {
    this.onClose(reason, headReason);
    this.#socket.terminate();
  }

  onDrain(): void {
    const rest = this.#unwritten;
    this.#unwritten = undefined;
    if (rest !== undefined) this.#write(rest);
  }

  onData(bytes: Buffer): void {
    this.activeAtMs = this.#owner.clock.monotonic();
    const phase = this.#phase;
    if (phase.kind === 'body') return this.#decode(phase, bytes);
    // No request is under way.
    if (phase.kind !== 'sent') return this.destroy('bad-framing');
    const all = phase.bytes.length === 0 ? bytes : Buffer.concat([phase.bytes, bytes]);
    const read = readHead(all, phase.passedBytes);
    if (read.kind === 'bad') return this.destroy('bad-framing', read.reason);
    if (read.kind === 'more') {
      const passedBytes = phase.passedBytes + read.from;
      return this.#move({ kind: 'part', bytes: all.subarray(read.from), passedBytes });
    }
    const { handler } = phase;
    const rest = readFrom(all, read.end);
    if (handler.onSmallReply !== undefined && isSmallReply(read.head, rest)) {
      this.#becomeIdle(true);
      return handler.onSmallReply(rest, this.activeAtMs, this);
    }
    const body = new Body(read.head, handler, this, this.#owner.clock);
    this.#move({ kind: 'head', body });
    if (rest.length > 0 || body.decoder.state === 'end') this.#decode(body, rest);
  }

  /** The backend sends no more. Only this ends a body that has no other end: a reset closes without it. */
  onEnd(): void {
    const phase = this.#phase;
    if (phase.kind !== 'body' || phase.head.framing !== 'until-close') return;
    if (this.#unwritten !== undefined) return; // a write that met a reset takes it away: the next read sees an end
    this.#complete(phase, false);
  }

  onClose(reason: CutReason = 'closed', headReason: string = reason): void {
    const phase = this.#phase;
    if (phase.kind === 'closed') return;
    this.#move(CLOSED);
    this.#owner.onClose(this);
    if (phase.kind === 'queued' || phase.kind === 'sent') {
      const isSilent = phase.kind === 'sent' && phase.bytes.length + phase.passedBytes === 0;
      // What came or closed before it was written has nothing to do with it.
      const unwritten = phase.kind === 'queued' && (reason === 'closed' || reason === 'bad-framing');
      // Only an end of the backend's own: one that stalled has the request, and must not get it twice.
      const stale = unwritten || (headReason === 'closed' && this.#exchanges > 1 && isSilent);
      phase.handler.onOutcome({ kind: 'no-answer', reason: headReason, stale, unwritten });
    } else if (phase.kind === 'body') {
      phase.noteRead();
      const isUnread = reason === 'closed' && phase.isBehind;
      phase.finish({ kind: 'cut', reason: isUnread ? 'unread' : reason, bytes: phase.bytes });
      if (!phase.isHanded) phase.handler.onOutcome({ kind: 'no-answer', reason });
    }
  }

  #move(event: PhaseEvent<Body>): void {
    this.#phase = nextPhase(this.#phase, event);
  }

  #write(bytes: Buffer): void {
    const written = this.#socket.write(bytes);
    if (written < bytes.length) this.#unwritten = bytes.subarray(Math.max(0, written));
  }

  #decode(phase: Body, bytes: Buffer): void {
    const { length } = bytes;
    const { decoder } = phase;
    const piece = decoder.push(bytes);
    phase.bytes += piece.length;
    const wait = piece.length > 0 ? phase.write(piece) : undefined;
    if (phase.isPiped) free(bytes);
    if (wait instanceof Promise) wait.catch(() => undefined); // a reader that fails cancels by itself
    if (this.#phase !== phase) return; // a reader cancelled the body in the middle of these bytes
    if (decoder.state === 'bad') return this.destroy('bad-framing');
    if (decoder.state === 'end' || decoder.state === 'surplus')
      this.#complete(phase, decoder.state === 'end');
    else if (wait instanceof Promise) this.#waitFor(phase, wait);
    else if (!phase.isPiped) this.#hand(phase);
    else if (moved(length)) this.#waitFor(phase);
  }

  /** Gives the reply to whoever waits for it or for more of it, when there is any, and stops reading until it is read. */
  #hand(phase: Body): void {
    const { handler } = phase;
    if (phase.pieces.length === 0 && phase.end === undefined) return;
    if (phase.end === undefined) this.#socket.pause();
    phase.wakeMore?.();
    phase.wakeMore = undefined;
    if (phase.isHanded) return;
    phase.isHanded = true;
    handler.onOutcome({ kind: 'reply', head: phase.head, body: phase });
  }

  /** Reads on for a body. What is not piped is kept, and must not lie where turns read to. */
  readOn(body: Body): void {
    this.activeAtMs = this.#owner.clock.monotonic();
    if (body.isPiped && moved(body.bytes)) this.#waitFor(body);
    else this.#socket.resume();
  }

  /** Stops reading until the promise is settled and the connection's turn has come. */
  #waitFor(body: Body, reader?: Promise<unknown>): void {
    this.#waiting = true;
    this.#socket.pause();
    const go = () => {
      body.noteRead();
      awaitTurn(() => this.#takeTurn(body));
    };
    if (reader === undefined) return go();
    body.noteUnread();
    reader.then(go, go);
  }

  /** Reads what has come of the body by now; when that was all, the runtime says when there is more. */
  #takeTurn(body: Body): void {
    if (this.#phase !== body) return;
    this.#waiting = false;
    this.activeAtMs = this.#owner.clock.monotonic();
    const read = this.#isTls ? 'nothing' : readNow(this.#socket);
    if (read === 'broken') return this.destroy('closed');
    if (read !== 'nothing') this.onData(read);
    if (!this.#waiting && !this.#isClosed) this.#socket.resume();
  }

  #complete(phase: Body, clean: boolean): void {
    this.#waiting = false;
    phase.finish({ kind: 'complete', bytes: phase.bytes });
    this.#becomeIdle(clean && phase.head.reusable);
    this.#hand(phase);
  }

  /** The exchange is over; a connection that cannot carry another is closed. */
  #becomeIdle(isReusable: boolean): void {
    this.#move(ENDED);
    if (isReusable && this.#unwritten === undefined) this.#owner.onIdle(this);
    else this.destroy('closed');
  }
}

/** Whether the reply has come whole and is as nearly all small answers are. */
function isSmallReply({ status, isJson, encoding, framing, reusable }: ResponseHead, body: Buffer): boolean {
  const isPlain = status === 200 && isJson && encoding === undefined && reusable;
  return isPlain && framing === body.length && body.length > 0;
}
