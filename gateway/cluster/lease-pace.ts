/** When a message about an account's rate or credits is sent; `soon`: not yet, so the next tick looks again. */
export type Due = 'now' | 'soon' | 'never';

/** Time constant with which earlier requests fade from the average. */
const FADE_MS = 1_000;

/** The wants of requests lately, a second: calls or credits, as a moving average. */
export class Demand {
  #perSecond = 0;
  constructor(public lastMs: number) {}

  /** Counts a request, refused or not: a process without tokens must be able to gain a share of them. */
  offer(amount: number, nowMs: number): void {
    this.#perSecond = this.at(nowMs) + amount * (1_000 / FADE_MS);
    this.lastMs = nowMs;
  }

  at(nowMs: number): number {
    return this.#perSecond * Math.exp(Math.min(0, this.lastMs - nowMs) / FADE_MS);
  }
}

/** Messages that may follow the first one without a pause after a rest. */
const SPARE_MAX = 2;

/** Limits how often messages about one account are sent: one an interval, and some more after a rest. */
export class Pace {
  #lastMs = Number.NEGATIVE_INFINITY;
  #spare = SPARE_MAX;

  /** The earliest time of the next message, `nowMs` or later. */
  nextMs(intervalMs: number, nowMs: number): number {
    return this.#spare > 0 ? nowMs : Math.max(nowMs, this.#lastMs + intervalMs);
  }

  /** Counts a message sent at `nowMs`, also one that did not wait for `nextMs`. */
  note(intervalMs: number, nowMs: number): void {
    const turns = Math.floor((nowMs - this.#lastMs) / intervalMs);
    this.#spare = Math.max(0, Math.min(SPARE_MAX, this.#spare + turns - 1));
    this.#lastMs = nowMs;
  }
}
