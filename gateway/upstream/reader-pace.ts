import type { Clock } from '../../shared/clock.ts';

/** A reader that was waited for less long is not behind. */
export const BEHIND_MS = 1_000;
/** A reader that has taken no piece for so many times its longest wait has stopped: slow ones keep a steady pace. */
const STEADY_TIMES = 2;

/** How the reader of a body keeps up with it, by the times that it was waited for. */
export class ReaderPace {
  readonly #clock: Clock;
  /** The bytes of the body so far. */
  bytes = 0;
  readonly #beganMs: number;
  /** Since when its reader is waited for, on the monotonic clock; infinite: it is not. */
  waitingSinceMs = Infinity;
  /** How long its reader was waited for before, all in all and at most before it took another piece. */
  #waitedMs = 0;
  #longestWaitMs = 0;
  /** Since when a reader may take it; infinite: one does, or none may. */
  #offeredMs = Infinity;

  constructor(clock: Clock, beganMs: number) {
    this.#clock = clock;
    this.#beganMs = beganMs;
  }

  noteUnread(): void {
    this.waitingSinceMs = Math.min(this.waitingSinceMs, this.#clock.monotonic());
  }

  /** Its reader, if it was waited for, is no longer. */
  noteRead(): void {
    const ms = Math.max(0, this.#clock.monotonic() - this.waitingSinceMs);
    this.#waitedMs += ms;
    this.#longestWaitMs = Math.max(this.#longestWaitMs, ms);
    this.waitingSinceMs = Infinity;
  }

  get #allWaitedMs(): number {
    return this.#waitedMs + Math.max(0, this.#clock.monotonic() - this.waitingSinceMs);
  }

  get #ageMs(): number {
    return Math.max(1, this.#clock.monotonic() - this.#beganMs);
  }

  /** Bytes that its reader has taken, or holds back, in each millisecond of its time. */
  get readPerMs(): number {
    return this.bytes / this.#ageMs;
  }

  /** Whether its reader was behind for most of its time: then the backend is not to blame for an end. */
  get isBehind(): boolean {
    return this.#allWaitedMs >= BEHIND_MS && this.#allWaitedMs >= this.#ageMs / 2;
  }

  /** Whether its reader has taken no piece for so long that he is not merely slow. */
  get isStopped(): boolean {
    const ms = this.#clock.monotonic() - this.unreadSinceMs;
    return ms >= Math.max(BEHIND_MS, STEADY_TIMES * this.#longestWaitMs);
  }

  /** A reader may take it from now on. */
  noteOffered(): void {
    this.#offeredMs = this.#clock.monotonic();
  }

  noteTaken(): void {
    this.#offeredMs = Infinity;
  }

  /** Since when it could be read and is not, also because its turn in a batch has not come; infinite: it is read. */
  get unreadSinceMs(): number {
    return Math.min(this.#offeredMs, this.waitingSinceMs);
  }
}
