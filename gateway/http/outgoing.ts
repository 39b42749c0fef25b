import type { Clock } from '../../shared/clock.ts';
import { EMPTY } from './slab.ts';

/** So much of a body is copied, so that what stands before or behind it leaves in the same write. */
const JOINED_BYTES_MAX = 16_384;
const LINE_END = Buffer.from('\r\n');

/** The bytes that leave by a connection: they are written in as few pieces as it can be, and kept as far as the system does not take it. */
export class Outgoing {
  readonly #socket: Bun.Socket<unknown>;
  readonly #clock: Clock;
  readonly #onBroken: () => void;
  /** Leaves together with the next bytes: a head, or a chunk's size. */
  #corked: Buffer = EMPTY;
  #unwritten: Buffer[] = [];
  /** Answers that have been given, but have not left to the last byte. */
  #unsent: SendingState[] = [];
  #drained: PromiseWithResolvers<void> | undefined;
  #isClosed = false;
  #stuckSinceMs = 0;

  constructor(socket: Bun.Socket<unknown>, clock: Clock, onBroken: () => void) {
    this.#socket = socket;
    this.#clock = clock;
    this.#onBroken = onBroken;
  }

  /** Whether the system takes no more for now: its reader is behind. */
  get isUnread(): boolean {
    return this.#unwritten.length > 0;
  }

  /** Since when nothing of what is unread could be written. */
  get stuckSinceMs(): number {
    return this.#stuckSinceMs;
  }

  get isWritten(): boolean {
    return this.#corked.length === 0 && this.#unwritten.length === 0;
  }

  /** A small answer leaves with others, by `endTurn`; of a larger one the head leaves with its first bytes. */
  add(head: string, body: Uint8Array): void {
    if (body.length > JOINED_BYTES_MAX) {
      this.cork(head);
      this.write(Buffer.from(body.buffer, body.byteOffset, body.length));
      return;
    }
    const joined = Buffer.allocUnsafe(head.length + body.length);
    joined.write(head, 'latin1');
    joined.set(body, head.length);
    if (this.#corked.length > JOINED_BYTES_MAX) this.endTurn();
    this.#corked = this.#corked.length === 0 ? joined : Buffer.concat([this.#corked, joined]);
  }

  /** The head of a stream leaves with its first bytes. */
  cork(head: string): void {
    this.#corked = Buffer.concat([this.#corked, Buffer.from(head, 'latin1')]);
  }

  /** Writes what the turn has gathered (`turns.ts`). */
  endTurn(): void {
    const ahead = this.#corked;
    this.#corked = EMPTY;
    this.#send(ahead);
    this.#settleSent();
  }

  writeChunk(piece: Buffer): Promise<void> | undefined {
    if (piece.length === 0) return this.#drained?.promise;
    this.cork(`${piece.length.toString(16)}\r\n`);
    // Some clients give a chunk to its reader with its line end.
    const tail = Buffer.concat([piece.subarray(-JOINED_BYTES_MAX), LINE_END]);
    if (piece.length <= JOINED_BYTES_MAX) return this.write(tail);
    this.write(piece.subarray(0, -JOINED_BYTES_MAX));
    return this.write(tail);
  }

  /**
   * Writes bytes, which may be overwritten afterwards, behind those that are to leave with them, so that neither is sent
   * alone where it is small; gives a promise when not all of them are taken at once.
   */
  write(bytes: Buffer): Promise<void> | undefined {
    const ahead = this.#corked;
    if (ahead.length === 0) return this.#send(bytes);
    this.#corked = EMPTY;
    const joined = bytes.length <= 2 * JOINED_BYTES_MAX ? bytes : bytes.subarray(0, JOINED_BYTES_MAX);
    this.#send(Buffer.concat([ahead, joined]));
    return this.#send(bytes.subarray(joined.length));
  }

  /** Writes on; gives whether that was the last. */
  drain(): boolean {
    if (this.#unwritten.length === 0) return false;
    for (let piece = this.#unwritten[0]; piece !== undefined; piece = this.#unwritten[0]) {
      const written = this.#put(piece);
      if (written > 0) this.#stuckSinceMs = this.#clock.monotonic();
      if (written < piece.length) {
        this.#unwritten[0] = piece.subarray(written);
        return false;
      }
      this.#unwritten.shift();
    }
    this.#drained?.resolve();
    this.#drained = undefined;
    this.#settleSent();
    return true;
  }

  /** Tells an answer, which has been written, when its last byte has left. */
  awaitSent(answer: SendingState): void {
    if (!answer.isAwaited) return answer.sent();
    this.#unsent.push(answer);
    this.#settleSent();
  }

  /** Whether an answer waits for its last byte to leave. */
  get isAwaited(): boolean {
    return this.#unsent.length > 0;
  }

  /** Throws away what has not left. */
  close(): void {
    this.#isClosed = true;
    this.#unwritten = [];
    this.#corked = EMPTY;
    this.#drained?.resolve();
    this.#settleSent();
  }

  #settleSent(): void {
    if (this.#unsent.length === 0 || !this.isWritten) return;
    const sent = this.#unsent;
    this.#unsent = [];
    for (const answer of sent) answer.sent();
  }

  #send(bytes: Buffer): Promise<void> | undefined {
    if (this.#isClosed || bytes.length === 0) return this.#drained?.promise;
    const written = this.#unwritten.length > 0 ? 0 : this.#put(bytes);
    if (written === bytes.length) return undefined;
    if (this.#unwritten.length === 0) this.#stuckSinceMs = this.#clock.monotonic();
    this.#unwritten.push(Buffer.from(bytes.subarray(written)));
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  /** A write that meets a reset ends the connection, later: where it does not read, the runtime does not tell of it. */
  #put(bytes: Buffer): number {
    const written = this.#socket.write(bytes);
    if (written < 0) queueMicrotask(this.#onBroken);
    return Math.max(0, written);
  }
}

/** Waits for an answer to be sent: the permits of its account, which are held as long as it may be in memory. */
export class SendingState {
  #isSent = false;
  #then: (() => void) | undefined;

  /** Calls `then` when the answer has been sent, at once if it has. */
  onSent(then: () => void): void {
    if (this.#isSent) return then();
    const before = this.#then;
    this.#then = before === undefined ? then : () => (before(), then());
  }

  /** Whether anything waits for it. */
  get isAwaited(): boolean {
    return this.#then !== undefined;
  }

  /** The last byte has been handed to the system, or nobody reads the answer any more. */
  sent(): void {
    const then = this.#then;
    this.#isSent = true;
    this.#then = undefined;
    then?.();
  }
}
