/** First bytes are counted by steps of time, of which the last count: ten seconds and what has passed of the present one. */
const STEPS = 6;
export const STEP_MS = 2_000;

/** Times are counted in buckets of an eighth of an octave, from 1/16 ms to a minute: a tenth is the error of a quantile. */
const BUCKETS = 160;
const PER_OCTAVE = 8;
const OCTAVES_BELOW_ONE = 4;

/** Fewer first bytes have no median. One caller that waits three seconds for each answer makes so many. */
const COUNT_MIN = 4;
/** A median that is older says nothing of the present. */
const KNOWN_MS = 300_000;

/** Slow is what takes so many times as long as the best of its lane, and longer than this. */
const SLOW_TIMES = 5;
const SLOW_MS = 100;
/** Of the calls that would prefer a slow backend one in so many tries it, or one in this time, and none sooner. */
const SAMPLE_CALLS = 20;
const SAMPLE_MS_MIN = 5_000;
const SAMPLE_MS_MAX = 25_000;
/** After a sample that was answered in time the next comes sooner; so many in a row end the slowness. */
const CHECK_MS = 2_000;
const IN_TIME_MIN = 3;

/** Times of the last steps, counted by buckets. */
class Times {
  readonly #counts = new Uint32Array(STEPS * BUCKETS);
  #step = 0;

  add(ms: number): void {
    const bucket = Math.floor(PER_OCTAVE * (Math.log2(ms) + OCTAVES_BELOW_ONE));
    const at = this.#step * BUCKETS + Math.min(BUCKETS - 1, Math.max(0, bucket));
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  /** Begins a step, and forgets the oldest. */
  turn(): void {
    this.#step = (this.#step + 1) % STEPS;
    this.#counts.fill(0, this.#step * BUCKETS, (this.#step + 1) * BUCKETS);
  }

  clear(): void {
    this.#counts.fill(0);
  }

  /** The time that so large a share of them is below; `undefined`: they are fewer than `countMin`. */
  static quantileMs(times: readonly Times[], share: number, countMin: number): number | undefined {
    const sums = new Float64Array(BUCKETS);
    let all = 0;
    for (const each of times)
      for (let i = 0; i < STEPS * BUCKETS; i++) {
        const count = each.#counts[i] ?? 0;
        sums[i % BUCKETS] = (sums[i % BUCKETS] ?? 0) + count;
        all += count;
      }
    if (all < countMin) return undefined;
    let bucket = 0;
    for (let seen = sums[0] ?? 0; seen < share * all && bucket < BUCKETS - 1;) seen += sums[++bucket] ?? 0;
    return 2 ** ((bucket + 0.5) / PER_OCTAVE - OCTAVES_BELOW_ONE);
  }
}

/** The change that a comparison made: it is slow, or as fast as others again, or was never slow because its calls are heavy. */
export type SlownessChange = 'slow' | 'recovered' | 'excused';

/** How soon one backend begins to answer the calls of a lane. */
export class Latency {
  /** It begins far later than the best of its lane: the calls that would prefer it go to others, but for samples. */
  isSlow = false;
  readonly #times = new Times();
  /** Of the calls that were kept from it since it is slow. */
  readonly #elsewhere = new Times();
  /** The median of the last steps, if there are enough first bytes, and the last that was known. */
  #medianMs: number | undefined;
  #known = { ms: 0, atMs: -Infinity };
  /** The median of its own calls elsewhere, when that was last known. */
  #knownElsewhere = { ms: 0, atMs: -Infinity };
  #slowMs = 0;
  #boundMs = Infinity;
  #inTime = 0;
  #callsSinceSample = 0;
  #sampledAtMs = 0;

  /** Counts a first byte; or, when none came, how long it did not come, unless it might have come as soon as any. */
  note(ms: number, isAnswered = true): void {
    if (!isAnswered && ms < SLOW_MS) return;
    this.#times.add(ms);
    if (this.isSlow) this.#inTime = isAnswered && ms <= this.#boundMs ? this.#inTime + 1 : 0;
  }

  /** The same of a call that was kept from it because it is slow, at the backend that has it. */
  noteElsewhere(ms: number, isAnswered: boolean): void {
    if (isAnswered || ms >= SLOW_MS) this.#elsewhere.add(ms);
  }

  /** Begins a step, and forgets the oldest. */
  turn(): void {
    this.#times.turn();
    this.#elsewhere.turn();
  }

  /** Its median now, or lately; `undefined`: not known. */
  medianMs(nowMs: number): number | undefined {
    this.#medianMs = Times.quantileMs([this.#times], 0.5, COUNT_MIN);
    if (this.#medianMs !== undefined) this.#known = { ms: this.#medianMs, atMs: nowMs };
    return nowMs - this.#known.atMs < KNOWN_MS ? this.#known.ms : undefined;
  }

  /** Compares its median with the best of its lane, or with its own calls elsewhere if these take longer; gives a change. */
  compare(bestMs: number, nowMs: number): SlownessChange | undefined {
    const elsewhereMs = Times.quantileMs([this.#elsewhere], 0.5, COUNT_MIN);
    if (elsewhereMs !== undefined) this.#knownElsewhere = { ms: elsewhereMs, atMs: nowMs };
    const isKnown = nowMs - this.#knownElsewhere.atMs < KNOWN_MS;
    this.#boundMs = Math.max(SLOW_MS, SLOW_TIMES * Math.max(bestMs, isKnown ? this.#knownElsewhere.ms : 0));
    let change: SlownessChange | undefined;
    if (!this.isSlow) change = (this.#medianMs ?? 0) > this.#boundMs ? 'slow' : undefined;
    else if (this.#inTime >= IN_TIME_MIN) change = 'recovered';
    else if (elsewhereMs !== undefined && this.#slowMs <= this.#boundMs) change = 'excused';
    if (change !== undefined) this.#begin(change, nowMs);
    return change;
  }

  #begin(change: SlownessChange, nowMs: number): void {
    this.isSlow = change === 'slow';
    this.#inTime = this.#callsSinceSample = 0;
    this.#sampledAtMs = nowMs;
    this.#slowMs = this.#medianMs ?? 0;
    this.#elsewhere.clear();
    if (change !== 'recovered') return;
    this.#times.clear();
    this.#known.atMs = -Infinity;
  }

  /** Whether the next call that would prefer it goes there although it is slow: by these its recovery is noticed. */
  takesSample(nowMs: number): boolean {
    this.#callsSinceSample++;
    const ms = nowMs - this.#sampledAtMs;
    const isUsual = ms >= SAMPLE_MS_MIN && this.#callsSinceSample >= SAMPLE_CALLS;
    const isDue = isUsual || ms >= (this.#inTime > 0 ? CHECK_MS : SAMPLE_MS_MAX);
    if (!isDue) return false;
    this.#callsSinceSample = 0;
    this.#sampledAtMs = nowMs;
    return true;
  }

  /** The time within which so large a share of first bytes came at these latencies; `undefined`: they are fewer than `countMin`. */
  static quantileMs(latencies: readonly Latency[], share: number, countMin: number): number | undefined {
    const times = latencies.map((latency) => latency.#times);
    return Times.quantileMs(times, share, countMin);
  }
}
