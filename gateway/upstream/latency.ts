/** First bytes are counted by steps of time, of which the last few tell: ten seconds and what is gone of the present one. */
const STEPS = 6;
export const STEP_MS = 2_000;

/** Times are counted in buckets of an eighth of an octave, from 1/16 ms to a minute: a tenth is the error of a quantile. */
const BUCKETS = 160;
const PER_OCTAVE = 8;
const OCTAVES_BELOW_ONE = 4;

/** Of fewer first bytes there is no median. One caller who waits three seconds for each answer makes so many. */
const COUNT_MIN = 4;
/** A median that is older says nothing of the present. */
const KNOWN_MS = 300_000;

/** Slow is what takes so many times as long as the best of its lane, and longer than this. */
const SLOW_TIMES = 5;
const SLOW_MS = 100;
/**
 * While the calls of one account alone take longer than `SLOW_MS`, they may be heavy ones: the backend is slow only when
 * its median is above this. Heavy calls of two accounts, or heavier ones of one, cannot be told from a slow backend.
 */
const SLOW_ALONE_MS = 1_000;

/** Of the calls that would prefer a slow backend one in so many tries it, or one in this time, and none sooner. */
const SAMPLE_CALLS = 20;
const SAMPLE_MS_MIN = 5_000;
const SAMPLE_MS_MAX = 25_000;
/** After a sample that was answered in time the next comes sooner; so many in a row end the slowness. */
const CHECK_MS = 2_000;
const IN_TIME_MIN = 3;

/** How soon one backend begins to answer the calls of a lane. */
export class Latency {
  /** It begins far later than the best of its lane: the calls that would prefer it go to others, but for samples. */
  isSlow = false;
  readonly #counts = new Uint32Array(STEPS * BUCKETS);
  /** By step, two at most of the accounts that waited for longer than `SLOW_MS`. */
  readonly #lateAccounts = Array.from({ length: STEPS }, (): number[] => []);
  #step = 0;
  /** The median of the last steps, if there are enough first bytes, and the last that was known. */
  #medianMs: number | undefined;
  #known = { ms: 0, atMs: -Infinity };
  #boundMs = Infinity;
  #inTime = 0;
  #callsSinceSample = 0;
  #sampledAtMs = 0;

  /** Counts an account's first byte; or, when none came, how long it did not come, unless it might have come as soon as any. */
  note(ms: number, accountId: number, hasBegun = true): void {
    if (!hasBegun && ms < SLOW_MS) return;
    const bucket = Math.floor(PER_OCTAVE * (Math.log2(ms) + OCTAVES_BELOW_ONE));
    const at = this.#step * BUCKETS + Math.min(BUCKETS - 1, Math.max(0, bucket));
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    if (ms > SLOW_MS) this.#noteLate(accountId);
    if (this.isSlow) this.#inTime = hasBegun && ms <= this.#boundMs ? this.#inTime + 1 : 0;
  }

  #noteLate(accountId: number): void {
    const late = this.#lateAccounts[this.#step] ?? [];
    if (late.length < 2 && !late.includes(accountId)) late.push(accountId);
  }

  /** Begins a step, and forgets the oldest. */
  turn(): void {
    this.#step = (this.#step + 1) % STEPS;
    this.#lateAccounts[this.#step] = [];
    this.#counts.fill(0, this.#step * BUCKETS, (this.#step + 1) * BUCKETS);
  }

  /** Its median now, or lately; `undefined`: not known. */
  medianMs(nowMs: number): number | undefined {
    this.#medianMs = Latency.quantileMs([this], 0.5, COUNT_MIN);
    if (this.#medianMs !== undefined) this.#known = { ms: this.#medianMs, atMs: nowMs };
    return nowMs - this.#known.atMs < KNOWN_MS ? this.#known.ms : undefined;
  }

  /** Compares what `medianMs` found with the best of its lane; true when that changed whether it is slow. */
  compare(bestMs: number, nowMs: number): boolean {
    this.#boundMs = Math.max(SLOW_MS, SLOW_TIMES * bestMs);
    const isOneAccount = new Set(this.#lateAccounts.flat()).size < 2;
    const slowMs = Math.max(this.#boundMs, isOneAccount ? SLOW_ALONE_MS : 0);
    if (this.isSlow ? this.#inTime < IN_TIME_MIN : (this.#medianMs ?? 0) <= slowMs) return false;
    this.isSlow = !this.isSlow;
    this.#inTime = this.#callsSinceSample = 0;
    this.#sampledAtMs = nowMs;
    if (this.isSlow) return true;
    this.#counts.fill(0);
    for (const late of this.#lateAccounts) late.length = 0;
    this.#known.atMs = -Infinity;
    return true;
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
    const sums = new Float64Array(BUCKETS);
    let all = 0;
    for (const latency of latencies)
      for (let i = 0; i < STEPS * BUCKETS; i++) {
        const count = latency.#counts[i] ?? 0;
        sums[i % BUCKETS] = (sums[i % BUCKETS] ?? 0) + count;
        all += count;
      }
    if (all < countMin) return undefined;
    let bucket = 0;
    for (let seen = sums[0] ?? 0; seen < share * all && bucket < BUCKETS - 1;) seen += sums[++bucket] ?? 0;
    return 2 ** ((bucket + 0.5) / PER_OCTAVE - OCTAVES_BELOW_ONE);
  }
}
