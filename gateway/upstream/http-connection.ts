import type { Clock } from '../../shared/clock.ts';
import { type BodyDecoder, createBodyDecoder, readHead, type ResponseHead } from './http-parser.ts';

/** How a body ended. `bytes` is its length without the framing, as far as it came. */
export type BodyEnd =
  | { readonly kind: 'complete'; readonly bytes: number }
  | { readonly kind: 'cut'; readonly reason: CutReason; readonly bytes: number };

/** Why a body broke off: the connection closed, nothing came for too long, the framing broke, or we let go of it. */
export type CutReason = 'closed' | 'stalled' | 'bad-framing' | 'cancelled';

/**
 * Takes a piece of a body; a promise asks the sender to wait for it. `SPENT` (`spent.ts`), also as a promise's value,
 * gives the piece's memory back; whoever answers anything else keeps the piece.
 */
export type WritePiece = (piece: Buffer) => unknown;

/** A body under way. Single-use: one of the three must be called, or its connection stays taken. */
export type ReplyBody = Readonly<{
  /** Hands every piece to `write` as it comes, never more than one read ahead of a promise it gave. Never rejects. */
  pipe(write: WritePiece): Promise<BodyEnd>;
  /** Lets go of it and of its connection. */
  cancel(): void;
  /** What has already come: pieces that `pipe` will hand on first, and whether that is all. */
  begun(): Readonly<{ pieces: readonly Buffer[]; ended: boolean }>;
}>;

export type HttpReply = Readonly<{ kind: 'reply'; head: ResponseHead; body: ReplyBody }>;

/** Why no head came. `unsent` means that the backend cannot have seen a byte of the request. */
export type NoReply =
  | { readonly kind: 'unsent'; readonly reason: string }
  /** `stale`: the connection had been used before and closed without a byte; a new one may do better. */
  | { readonly kind: 'no-answer'; readonly reason: string; readonly stale: boolean };

/**
 * What a reader may answer to a piece, or let its promise give: nobody will look at these bytes again. Their memory is
 * then the next read's at once. Left to the collector, a stream at full speed keeps touching new memory, which costs a
 * fifth of a relay's CPU time.
 */
export const SPENT = Symbol('spent');

/** Below this a collector is cheaper; above it memory is never part of a shared pool. */
const FREED_BYTES_MIN = 65_536;

/** Gives back the memory of bytes that fill it and that nobody will look at again: they are gone for whoever does. */
export function free(bytes: Buffer): void {
  const { buffer, byteLength } = bytes;
  if (byteLength < FREED_BYTES_MIN || buffer.byteLength !== byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

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
  readonly settle: (outcome: HttpReply | NoReply) => void;
  /** What has come of the head under way. */
  bytes: Buffer;
  /** Interim heads before it. */
  passedBytes: number;
};

type BodyPhase = {
  readonly kind: 'body';
  readonly head: ResponseHead;
  readonly decoder: BodyDecoder;
  /** Resolves the exchange; called at the body's first byte, because until then another backend may be asked. */
  answer: ((outcome: HttpReply | NoReply) => void) | undefined;
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

  constructor(socket: Bun.Socket<unknown>, events: ConnectionEvents, clock: Clock) {
    this.#socket = socket;
    this.#events = events;
    this.#clock = clock;
  }

  /** Sends one request and resolves at the head of its reply. `request` is the whole message. Never rejects. */
  exchange(request: Buffer): Promise<HttpReply | NoReply> {
    if (this.#phase.kind !== 'idle') return Promise.resolve(NOT_IDLE);
    const { promise, resolve } = Promise.withResolvers<HttpReply | NoReply>();
    this.#phase = { kind: 'head', settle: resolve, bytes: EMPTY, passedBytes: 0 };
    this.#exchanges++;
    this.#write(request);
    return promise;
  }

  /** True while a body is under way whose reader is not behind: only then is silence the backend's. */
  get expectsBytes(): boolean {
    return this.#phase.kind === 'body' && !this.#waiting && this.#phase.write !== undefined;
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
    if (phase.kind !== 'head') return this.destroy('bad-framing'); // nobody asked for these bytes
    phase.bytes = phase.bytes.length === 0 ? bytes : Buffer.concat([phase.bytes, bytes]);
    const read = readHead(phase.bytes, phase.passedBytes);
    if (read.kind === 'more') {
      phase.passedBytes += read.from;
      phase.bytes = phase.bytes.subarray(read.from);
      return;
    }
    if (read.kind === 'bad') return this.#failHead(phase, read.reason);
    this.#begin(phase, read.head, phase.bytes.subarray(read.end));
  }

  onClose(): void {
    this.#closed('closed');
  }

  #write(bytes: Buffer): void {
    const written = this.#socket.write(bytes);
    if (written < bytes.length) this.#unwritten = bytes.subarray(Math.max(0, written));
  }

  #begin({ settle }: HeadPhase, head: ResponseHead, rest: Buffer): void {
    const phase: BodyPhase = {
      kind: 'body',
      head,
      decoder: createBodyDecoder(head.framing),
      answer: settle,
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
    const { answer } = phase;
    if (answer === undefined) return;
    phase.answer = undefined;
    if (phase.end === undefined) this.#socket.pause();
    answer({ kind: 'reply', head: phase.head, body: this.#bodyOf(phase) });
  }

  #bodyOf(phase: BodyPhase): ReplyBody {
    return {
      pipe: (write) => this.#pipe(phase, write),
      cancel: () => {
        if (phase.end === undefined) this.destroy('cancelled');
      },
      begun: () => ({ pieces: phase.early, ended: phase.end?.kind === 'complete' }),
    };
  }

  async #pipe(phase: BodyPhase, write: WritePiece): Promise<BodyEnd> {
    for (const piece of phase.early.splice(0)) {
      const wait = write(piece);
      if (wait instanceof Promise) await wait.catch(() => undefined); // a reader that fails cancels by itself
    }
    if (phase.end !== undefined) return phase.end;
    const { promise, resolve } = Promise.withResolvers<BodyEnd>();
    phase.write = write;
    phase.settle = resolve;
    this.activeAtMs = this.#clock.monotonic();
    this.#socket.resume();
    return promise;
  }

  #decode(phase: BodyPhase, bytes: Buffer): void {
    let asked: unknown;
    const decoded = phase.decoder.push(bytes, (piece) => {
      phase.bytes += piece.length;
      if (phase.write === undefined) phase.early.push(piece);
      else asked = phase.write(piece);
    });
    if (asked === SPENT) free(bytes);
    if (this.#phase !== phase) return; // a reader let go of the body in the middle of these bytes
    if (decoded === 'bad') return this.destroy('bad-framing');
    if (decoded !== 'more') this.#complete(phase, decoded === 'end');
    else if (asked instanceof Promise) this.#waitFor(asked, bytes);
    if (phase.bytes > 0 || phase.end !== undefined) this.#hand(phase);
  }

  #waitFor(wait: Promise<unknown>, bytes: Buffer): void {
    this.#waiting = true;
    this.#socket.pause();
    const go = () => {
      this.#waiting = false;
      this.activeAtMs = this.#clock.monotonic();
      if (this.#phase.kind === 'body') this.#socket.resume();
    };
    wait.then((answer) => {
      if (answer === SPENT) free(bytes);
      go();
    }, go);
  }

  #complete(phase: BodyPhase, clean: boolean): void {
    this.#finish(phase, { kind: 'complete', bytes: phase.bytes });
    if (!clean || !phase.head.reusable || this.#unwritten !== undefined) {
      this.#phase = CLOSED;
      this.#events.onClose(this);
      this.#socket.terminate();
      return;
    }
    this.#phase = IDLE;
    this.#events.onIdle(this);
  }

  #finish(phase: BodyPhase, end: BodyEnd): void {
    phase.end = end;
    phase.settle?.(end);
  }

  #failHead({ settle, bytes, passedBytes }: HeadPhase, reason: string): void {
    this.#phase = CLOSED;
    const isSilent = bytes.length + passedBytes === 0;
    // Only an end of the backend's own: one that was let go of because it stalled has the request, and must not get it twice.
    const stale = reason === 'closed' && this.#exchanges > 1 && isSilent;
    settle({ kind: 'no-answer', reason, stale });
    this.#events.onClose(this);
    this.#socket.terminate();
  }

  #cutBody(phase: BodyPhase, reason: CutReason): void {
    const whole = reason === 'closed' && phase.head.framing.kind === 'until-close';
    this.#finish(
      phase,
      whole ? { kind: 'complete', bytes: phase.bytes } : { kind: 'cut', reason, bytes: phase.bytes },
    );
    if (whole) this.#hand(phase);
    phase.answer?.({ kind: 'no-answer', reason, stale: false });
    phase.answer = undefined;
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
