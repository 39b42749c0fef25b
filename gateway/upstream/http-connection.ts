import type { Clock } from '../../shared/clock.ts';
import {
  type BodyDecoder,
  createBodyDecoder,
  isSmallReply,
  readHead,
  type ResponseHead,
  small,
} from './http-parser.ts';
import { atEndOfTurn, awaitTurn, free, moved, readNow } from './turns.ts';

/** How a body ended. `bytes` is its length without the framing, as far as it came. */
export type BodyEnd =
  | { readonly kind: 'complete'; readonly bytes: number }
  | { readonly kind: 'cut'; readonly reason: CutReason; readonly bytes: number };

/** Why a body broke off: the connection closed, nothing came for too long, the framing broke, or we let go of it. */
export type CutReason = 'closed' | 'stalled' | 'bad-framing' | 'cancelled';

/**
 * Takes a piece of a body. Its memory holds other bytes as soon as this returns: whoever keeps a piece copies it. The
 * sender waits for a promise.
 */
export type WritePiece = (piece: Buffer) => unknown;

/** A body under way. Single-use: one of the three must be called, or its connection stays taken. */
export type ReplyBody = Readonly<{
  /** Hands every piece to `write` as it comes, never more than one read ahead of a promise it gave. Never rejects. */
  pipe(write: WritePiece): Promise<BodyEnd>;
  /** Lets go of it and of its connection. */
  cancel(): void;
  /** What has already come: pieces that `pipe` will hand on first, and whether that is all. */
  arrived(): Readonly<{ pieces: readonly Buffer[]; ended: boolean }>;
}>;

export type HttpReply = Readonly<{ kind: 'reply'; head: ResponseHead; body: ReplyBody }>;

/** Why no head came. `unsent` means that the backend cannot have seen a byte of the request. */
export type NoReply =
  | { readonly kind: 'unsent'; readonly reason: string }
  /** `stale`: the connection had been used before and closed without a byte; a new one may do better. */
  | { readonly kind: 'no-answer'; readonly reason: string; readonly stale: boolean };

/** Waits for the outcome of one exchange. One of the first two is called, once. */
export type ExchangeHandler = Readonly<{
  /** The body of a small reply that came whole (`isSmallReply`). Without it every reply comes by `onOutcome`. */
  onSmallReply?(body: Buffer): void;
  onOutcome(outcome: HttpReply | NoReply): void;
  /** No reply has come for a while; called by the pool's tick, so that what is rarely needed is set up late. */
  onLate?(connection: Connection): void;
}>;

/** What a connection tells its pool. */
export type ConnectionEvents = Readonly<{
  /** A reply has ended and the connection may carry another request. */
  onIdle(connection: Connection): void;
  onClose(connection: Connection): void;
}>;

/** Where a connection is in its one exchange at a time. */
type Phase = { readonly kind: 'idle' } | HeadPhase | BodyPhase | { readonly kind: 'closed' };

type HeadPhase = {
  readonly kind: 'head';
  readonly handler: ExchangeHandler;
  /** Its request, until it is written at the end of the turn. */
  request: Buffer | undefined;
  /** What has come of the head under way. */
  bytes: Buffer;
  /** Interim heads before it. */
  passedBytes: number;
};

type BodyPhase = {
  readonly kind: 'body';
  readonly head: ResponseHead;
  readonly decoder: BodyDecoder;
  /** Resolves the exchange; called at the body's first byte, because until then another backend may be tried. */
  handler: ExchangeHandler | undefined;
  /** Pieces that came before `pipe` was called. */
  readonly early: Buffer[];
  bytes: number;
  write: WritePiece | undefined;
  settle: ((end: BodyEnd) => void) | undefined;
  end: BodyEnd | undefined;
};

const IDLE: Phase = { kind: 'idle' };
const CLOSED: Phase = { kind: 'closed' };

/**
 * One HTTP/1.1 connection to a backend, carrying one exchange at a time. A class: it has an identity, changes with
 * every byte, and ends. Nothing is read from the socket while a reader is behind, so at most one read is held.
 */
export class Connection {
  readonly #socket: Bun.Socket<unknown>;
  readonly #isTls: boolean;
  readonly #events: ConnectionEvents;
  readonly #clock: Clock;
  #phase: Phase = IDLE;
  #unwritten: Buffer | undefined;
  #waiting = false;
  #exchanges = 0;
  /** When the last byte came or went, on the pool's monotonic clock; the pool's tick judges by it. */
  activeAtMs = 0;
  /** When the head under way must have come. */
  headDueAtMs = Infinity;

  constructor(socket: Bun.Socket<unknown>, isTls: boolean, events: ConnectionEvents, clock: Clock) {
    this.#socket = socket;
    this.#isTls = isTls;
    this.#events = events;
    this.#clock = clock;
  }

  /**
   * Sends one request: the first `length` bytes of `message`, which may be overwritten afterwards. The handler hears
   * of the head of its reply, until `dueAtMs` of the monotonic clock.
   */
  exchange(message: Buffer, length: number, handler: ExchangeHandler, dueAtMs: number): void {
    if (this.#phase.kind !== 'idle') return handler.onOutcome(NOT_IDLE);
    const request = Buffer.allocUnsafe(length);
    message.copy(request, 0, 0, length);
    this.#phase = { kind: 'head', handler, request, bytes: EMPTY, passedBytes: 0 };
    this.#exchanges++;
    this.activeAtMs = this.#clock.monotonic();
    this.headDueAtMs = dueAtMs;
    atEndOfTurn(this);
  }

  /** Writes the request that was given to `exchange`, unless the connection has closed meanwhile. */
  endTurn(): void {
    const phase = this.#phase;
    if (phase.kind !== 'head' || phase.request === undefined) return;
    const { request } = phase;
    phase.request = undefined;
    this.#write(request);
  }

  /** Cuts what is overdue, or silent for `idleMs`; called a few times a second. */
  onTick(nowMs: number, idleMs: number): void {
    if (nowMs >= this.headDueAtMs) return this.destroy('stalled');
    const phase = this.#phase;
    if (phase.kind === 'head') phase.handler.onLate?.(this);
    // While its reader is behind, silence is not the backend's.
    const expectsBytes = phase.kind === 'body' && !this.#waiting && phase.write !== undefined;
    if (expectsBytes && nowMs - this.activeAtMs >= idleMs) this.destroy('stalled');
  }

  /** Ends the connection now; what is under way is cut for `reason`. */
  destroy(reason: CutReason): void {
    this.#closed(reason);
    this.#socket.terminate();
  }

  onDrain(): void {
    const rest = this.#unwritten;
    this.#unwritten = undefined;
    if (rest !== undefined) this.#write(rest);
  }

  onData(bytes: Buffer): void {
    this.activeAtMs = this.#clock.monotonic();
    const phase = this.#phase;
    if (phase.kind === 'body') return this.#decode(phase, bytes);
    // No request is under way.
    if (phase.kind !== 'head' || phase.request !== undefined) return this.destroy('bad-framing');
    const { handler } = phase;
    if (
      handler.onSmallReply !== undefined &&
      phase.bytes.length + phase.passedBytes === 0 &&
      isSmallReply(bytes)
    ) {
      const body = bytes.subarray(small.start, small.end);
      this.#becomeIdle(this.#unwritten === undefined);
      return handler.onSmallReply(body);
    }
    phase.bytes = phase.bytes.length === 0 ? bytes : Buffer.concat([phase.bytes, bytes]);
    const read = readHead(phase.bytes, phase.passedBytes);
    if (read.kind === 'more') {
      phase.passedBytes += read.from;
      phase.bytes = phase.bytes.subarray(read.from);
      return;
    }
    if (read.kind === 'bad') return this.#failHead(phase, read.reason);
    this.#begin(handler, read.head, phase.bytes.subarray(read.end));
  }

  /** The backend sends no more. Only this ends a body that has no other end: a reset closes without it. */
  onEnd(): void {
    const phase = this.#phase;
    if (phase.kind !== 'body' || phase.head.framing.kind !== 'until-close') return;
    if (this.#unwritten !== undefined) return; // a write that met a reset takes it away: the next read sees an end
    this.#complete(phase, false);
    this.#hand(phase);
  }

  onClose(): void {
    this.#closed('closed');
  }

  #write(bytes: Buffer): void {
    const written = this.#socket.write(bytes);
    if (written < bytes.length) this.#unwritten = bytes.subarray(Math.max(0, written));
  }

  #begin(handler: ExchangeHandler, head: ResponseHead, rest: Buffer): void {
    const phase: BodyPhase = {
      kind: 'body',
      head,
      decoder: createBodyDecoder(head.framing),
      handler,
      early: [],
      bytes: 0,
      write: undefined,
      settle: undefined,
      end: undefined,
    };
    this.#phase = phase;
    const isEmpty = head.framing.kind === 'length' && head.framing.bytes === 0;
    if (rest.length > 0 || isEmpty) this.#decode(phase, rest);
  }

  /** Gives the reply to whoever waits for it, and stops reading until it is read. */
  #hand(phase: BodyPhase): void {
    const { handler } = phase;
    if (handler === undefined) return;
    phase.handler = undefined;
    this.headDueAtMs = Infinity; // from here on the body's reader bounds its time
    if (phase.end === undefined) this.#socket.pause();
    handler.onOutcome({ kind: 'reply', head: phase.head, body: this.#bodyOf(phase) });
  }

  #bodyOf(phase: BodyPhase): ReplyBody {
    return {
      pipe: (write) => this.#pipe(phase, write),
      cancel: () => {
        if (phase.end === undefined) this.destroy('cancelled');
      },
      arrived: () => ({ pieces: phase.early, ended: phase.end?.kind === 'complete' }),
    };
  }

  async #pipe(phase: BodyPhase, write: WritePiece): Promise<BodyEnd> {
    // Read anew each time: the runtime hands over what it has of a paused socket when the backend resets it.
    for (let piece = phase.early.shift(); piece !== undefined; piece = phase.early.shift()) {
      const wait = write(piece);
      if (wait instanceof Promise) await wait.catch(() => undefined); // a reader that fails cancels by itself
    }
    if (phase.end !== undefined) return phase.end;
    const { promise, resolve } = Promise.withResolvers<BodyEnd>();
    phase.write = write;
    phase.settle = resolve;
    this.activeAtMs = this.#clock.monotonic();
    if (moved(phase.bytes)) this.#waitFor(undefined);
    else this.#socket.resume();
    return promise;
  }

  #decode(phase: BodyPhase, bytes: Buffer): void {
    const { length } = bytes;
    let wait: unknown;
    const decoded = phase.decoder.push(bytes, (piece) => {
      phase.bytes += piece.length;
      if (phase.write === undefined) phase.early.push(piece);
      else wait = phase.write(piece);
    });
    if (phase.write !== undefined) free(bytes);
    if (wait instanceof Promise) wait.catch(() => undefined); // a reader that fails cancels by itself
    if (this.#phase !== phase) return; // a reader let go of the body in the middle of these bytes
    if (decoded === 'bad') return this.destroy('bad-framing');
    if (decoded !== 'more') this.#complete(phase, decoded === 'end');
    else if (wait instanceof Promise) this.#waitFor(wait);
    else if (phase.write !== undefined && moved(length)) this.#waitFor(undefined);
    if (phase.bytes > 0 || phase.end !== undefined) this.#hand(phase);
  }

  /** Stops reading until the promise is settled and the connection's turn has come. */
  #waitFor(reader: Promise<unknown> | undefined): void {
    this.#waiting = true;
    this.#socket.pause();
    const go = () => awaitTurn(() => this.#takeTurn());
    if (reader === undefined) go();
    else reader.then(go, go);
  }

  /** Reads what has come by now; when that was all, the runtime says when there is more. */
  #takeTurn(): void {
    if (this.#phase.kind !== 'body') return;
    this.#waiting = false;
    this.activeAtMs = this.#clock.monotonic();
    const read = this.#isTls ? 'nothing' : readNow(this.#socket);
    if (read === 'broken') return this.destroy('closed');
    if (read !== 'nothing') this.onData(read);
    if (!this.#waiting && this.#phase !== CLOSED) this.#socket.resume();
  }

  #complete(phase: BodyPhase, clean: boolean): void {
    this.#finish(phase, { kind: 'complete', bytes: phase.bytes });
    this.#becomeIdle(clean && phase.head.reusable && this.#unwritten === undefined);
  }

  /** The exchange is over; a connection that cannot carry another is closed. */
  #becomeIdle(isReusable: boolean): void {
    this.headDueAtMs = Infinity;
    if (isReusable) {
      this.#phase = IDLE;
      return this.#events.onIdle(this);
    }
    this.#phase = CLOSED;
    this.#events.onClose(this);
    this.#socket.terminate();
  }

  #finish(phase: BodyPhase, end: BodyEnd): void {
    phase.end = end;
    phase.settle?.(end);
  }

  #failHead({ handler, bytes, passedBytes }: HeadPhase, reason: string): void {
    this.#phase = CLOSED;
    this.#events.onClose(this);
    this.#socket.terminate();
    const isSilent = bytes.length + passedBytes === 0;
    // Only an end of the backend's own: one that stalled has the request, and must not get it twice.
    const stale = reason === 'closed' && this.#exchanges > 1 && isSilent;
    handler.onOutcome({ kind: 'no-answer', reason, stale });
  }

  #cutBody(phase: BodyPhase, reason: CutReason): void {
    this.#finish(phase, { kind: 'cut', reason, bytes: phase.bytes });
    phase.handler?.onOutcome({ kind: 'no-answer', reason, stale: false });
    phase.handler = undefined;
  }

  #closed(reason: CutReason): void {
    const phase = this.#phase;
    if (phase.kind === 'closed') return;
    if (phase.kind === 'head') return this.#failHead(phase, reason);
    this.#phase = CLOSED;
    if (phase.kind === 'body') this.#cutBody(phase, reason);
    this.#events.onClose(this);
  }
}

const EMPTY = Buffer.alloc(0);
const NOT_IDLE: NoReply = { kind: 'no-answer', reason: 'the connection is not idle', stale: true };
