/** @jsxImportSource preact */
import { countText, Time } from './format.tsx';
import type { Tone } from './icons.tsx';
import { type Column, Table } from './table.tsx';

/** One line, or one part of a stack. `values` go with the chart's `timesMs`; null is a gap. */
type Series = Readonly<{
  label: string;
  values: readonly (number | null)[];
  /** A meaning of its own, such as refusals; otherwise colours come in order. */
  tone?: Tone | undefined;
}>;

type ChartProps = Readonly<{
  /** Unique on the page. */
  id: string;
  title: string;
  kind: 'line' | 'bars' | 'stacked';
  /** Unix milliseconds, ascending. */
  timesMs: readonly number[];
  series: readonly Series[];
  /** What the values count: "requests", "ms". */
  unit: string;
}>;

/**
 * A chart over time in UTC, drawn by JavaScript, and the same numbers as a table for everybody else. It stands in a
 * panel whose heading says what it shows; `title` says the same to readers of screens.
 */
export function Chart({ id, title, kind, timesMs, series, unit }: ChartProps) {
  const drawn = { kind, unit, times: timesMs.map((ms) => ms / 1_000), series };
  const rows = timesMs.map((atMs, i) => ({ atMs, i })).toReversed();
  return (
    <figure class="chart" id={id} aria-labelledby={`${id}-title`}>
      <figcaption id={`${id}-title`}>
        <span class="hidden">{title}, </span>
        {unit}
      </figcaption>
      <div class="chart-plot script-only" data-chart={JSON.stringify(drawn)} aria-hidden="true" />
      <details class="chart-data" id={`${id}-data`}>
        <summary>Show as a table</summary>
        <div class="chart-table" tabindex={0} role="region" aria-label={`${title}, as a table`}>
          <Table
            caption={`${title}, ${unit}`}
            columns={[
              ['Time', ({ atMs }) => <Time atMs={atMs} />, 'head'],
              ...series.map(({ label, values }): Column<{ i: number }> => {
                const cell = (value: number | null | undefined) =>
                  value === null || value === undefined ? '–' : countText(value);
                return [label, ({ i }) => cell(values[i]), 'end'];
              }),
            ]}
            rows={rows}
            keyOf={({ atMs }) => atMs}
            empty={<p>No data.</p>}
          />
        </div>
      </details>
    </figure>
  );
}

/** Units of the drawing; the stylesheet gives it its size. */
const WIDTH = 96;
const HEIGHT = 24;

type SparklineProps = Readonly<{
  /** Oldest first, none negative. */
  values: readonly number[];
  /** What it says, in words: "48 deliveries in 24 hours, 2 failed". */
  label: string;
  tone?: Tone | undefined;
}>;

/** A small line without axes, drawn by the server. */
export function Sparkline({ values, label, tone = 'accent' }: SparklineProps) {
  return (
    <svg
      class={`sparkline tone-${tone}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={label}
      preserveAspectRatio="none"
    >
      <polygon points={`0,${HEIGHT} ${pointsOf(values)} ${WIDTH},${HEIGHT}`} class="sparkline-area" />
      <polyline points={pointsOf(values)} fill="none" stroke="currentColor" stroke-width="1.5" />
    </svg>
  );
}

/** One point per value over the whole width; the highest touches the top, nothing at all lies on the ground. */
export function pointsOf(values: readonly number[]): string {
  const top = Math.max(1, ...values);
  const stepX = values.length > 1 ? WIDTH / (values.length - 1) : 0;
  const yOf = (value: number) => HEIGHT - 1 - (value / top) * (HEIGHT - 2);
  const points = values.length === 1 ? [values[0] ?? 0, values[0] ?? 0] : values;
  const step = values.length === 1 ? WIDTH : stepX;
  return points.map((value, i) => `${(i * step).toFixed(1)},${yOf(value).toFixed(1)}`).join(' ');
}
