import { build, type Histogram } from 'hdr-histogram-js';

/** How long something took, over all times that it happened. Milliseconds; all 0 where it never did. */
export type Timing = Readonly<{
  name: string;
  count: number;
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
  mean: number;
  /** Counts by range: the upper end of each in milliseconds, ascending, and how many were up to it and above the one before. */
  bars: readonly (readonly [upToMs: number, count: number])[];
}>;

/** One second of a run. Latencies are `null` in a second without an answer. */
export type Second = Readonly<{
  second: number;
  answers: number;
  failures: number;
  bytes: number;
  p50: number | null;
  p99: number | null;
}>;

/** Microseconds; what is longer counts as an hour. */
const HIGHEST_US = 3_600_000_000;
/** Bars of a tenfold range: each is a quarter wider than the one before. */
const BARS_PER_DECADE = 10;
/** Outcomes with a name of their own: an endpoint may answer any code. */
const OUTCOMES_MAX = 50;

/** Three significant digits from a microsecond to an hour, in 95 KB. */
function histogram(): Histogram {
  return build({
    bitBucketSize: 32,
    highestTrackableValue: HIGHEST_US,
    numberOfSignificantValueDigits: 3,
    useWebAssembly: false,
  });
}

/** Times of one kind. A class: it grows with each of them. */
export class Times {
  readonly #name: string;
  readonly #histogram = histogram();
  readonly #bars: number[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  get count(): number {
    return this.#histogram.totalCount;
  }

  note(ms: number): void {
    const us = Math.min(HIGHEST_US, Math.max(1, Math.round(1_000 * ms)));
    this.#histogram.recordValue(us);
    const bar = Math.ceil(BARS_PER_DECADE * Math.log10(us));
    this.#bars[bar] = (this.#bars[bar] ?? 0) + 1;
  }

  /** The value that the share of all is at most; 0 for none. The library gives the upper end of a range of three digits. */
  at(share: number): number {
    if (this.count === 0) return 0;
    return Math.min(this.#histogram.getValueAtPercentile(100 * share), this.#histogram.maxValue) / 1_000;
  }

  clear(): void {
    this.#histogram.reset();
    this.#bars.length = 0;
  }

  timing(): Timing {
    const { count } = this;
    return {
      name: this.#name,
      count,
      p50: this.at(0.5),
      p90: this.at(0.9),
      p99: this.at(0.99),
      p999: this.at(0.999),
      max: count === 0 ? 0 : this.#histogram.maxValue / 1_000,
      mean: count === 0 ? 0 : Number((this.#histogram.mean / 1_000).toFixed(3)),
      bars: this.#bars.flatMap((bar, i) =>
        bar === undefined ? [] : [[Number((10 ** (i / BARS_PER_DECADE - 3)).toPrecision(3)), bar] as const],
      ),
    };
  }
}

/** What came of the calls of a run, as it goes on: times by label, outcomes, and a row for each second. */
export class Recorder {
  readonly all: Times;
  readonly #labels = new Map<string, Times>();
  readonly #outcomes = new Map<string, number>();
  readonly #seconds: Second[] = [];
  readonly #now = new Times('');
  #second = 0;
  #answers = 0;
  #failures = 0;
  #bytes = 0;
  bytes = 0;
  answers = 0;
  failures = 0;

  constructor(name: string) {
    this.all = new Times(name);
  }

  /** A call that was answered by a result. */
  answered(atSeconds: number, tookMs: number, bytes: number, label?: string): void {
    this.#moveTo(atSeconds);
    this.all.note(tookMs);
    this.#now.note(tookMs);
    if (label !== undefined) this.timesOf(label).note(tookMs);
    this.answers++;
    this.#answers++;
    this.#bytes += bytes;
    this.bytes += bytes;
  }

  /** Something that is counted and has no time of its own. */
  progressed(atSeconds: number, answers: number, bytes: number): void {
    this.#moveTo(atSeconds);
    this.#answers += answers;
    this.#bytes += bytes;
    this.bytes += bytes;
  }

  /** One that was not. */
  failed(atSeconds: number, bytes = 0): void {
    this.#moveTo(atSeconds);
    this.failures++;
    this.#failures++;
    this.#bytes += bytes;
    this.bytes += bytes;
  }

  /** Counts an outcome. */
  count(kind: string, times = 1): void {
    const isKnown = this.#outcomes.has(kind) || this.#outcomes.size < OUTCOMES_MAX;
    const name = isKnown ? kind : 'others';
    this.#outcomes.set(name, (this.#outcomes.get(name) ?? 0) + times);
  }

  timesOf(label: string): Times {
    const times = this.#labels.get(label) ?? new Times(label);
    this.#labels.set(label, times);
    return times;
  }

  /** The row of the last whole second, and outcomes up to now, for a line of progress. */
  get latest(): Second | undefined {
    return this.#seconds.at(-1);
  }

  get outcomes(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#outcomes].toSorted(([, a], [, b]) => b - a));
  }

  get labels(): readonly Timing[] {
    return [...this.#labels.values()].map((times) => times.timing());
  }

  /** The seconds up to `atSeconds`, the last one as far as it went. */
  seconds(atSeconds: number): readonly Second[] {
    this.#moveTo(atSeconds);
    if (this.#answers + this.#failures + this.#bytes > 0) this.#close();
    return this.#seconds;
  }

  #moveTo(atSeconds: number): void {
    while (this.#second < Math.floor(atSeconds)) this.#close();
  }

  #close(): void {
    const isEmpty = this.#now.count === 0;
    this.#seconds.push({
      second: this.#second++,
      answers: this.#answers,
      failures: this.#failures,
      bytes: this.#bytes,
      p50: isEmpty ? null : this.#now.at(0.5),
      p99: isEmpty ? null : this.#now.at(0.99),
    });
    this.#now.clear();
    this.#answers = this.#failures = this.#bytes = 0;
  }
}
