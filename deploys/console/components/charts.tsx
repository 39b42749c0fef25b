/** @jsxImportSource preact */
import type { Minute } from '../../usage/minutes.ts';
import { countText, Time } from './format.tsx';
import { type Column, Table, type Tone } from './panels.tsx';

/** One line, or one part of a stack. `values` go with the chart's `timesMs`; null is a gap. */
type Series = Readonly<{
  label: string;
  values: readonly (number | null)[];
  /** A meaning of its own, such as refusals; otherwise colours come in order. */
  tone?: Tone | undefined;
}>;

type ChartProps = Readonly<{
  id: string;
  title: string;
  kind: 'line' | 'stacked';
  /** Unix milliseconds, ascending. */
  timesMs: readonly number[];
  series: readonly Series[];
  /** The unit of the values: "requests", "ms". */
  unit: string;
}>;

/** A chart over time in UTC, drawn by JavaScript, with the same numbers as a table. Its title is for screen readers. */
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
        <summary>Show as table</summary>
        <div class="chart-table" tabindex={0} role="region" aria-label={`${title}, as table`}>
          <Table
            caption={`${title}, ${unit}`}
            columns={[
              ['Time', ({ atMs }) => <Time atMs={atMs} />, 'head'],
              ...series.map(({ label, values }): Column<{ i: number }> => [
                label,
                ({ i }) => countText(values[i]),
                'end',
              ]),
            ]}
            rows={rows}
            empty={<p>No data.</p>}
          />
        </div>
      </details>
    </figure>
  );
}

const MINUTE_MS = 60_000;

type MinuteChartProps = Pick<ChartProps, 'id' | 'title' | 'kind' | 'unit'> &
  Readonly<{
    /** The oldest first. */
    minutes: readonly Minute[];
    /** Since when minutes are counted; `undefined`: not yet. */
    sinceMs: number | undefined;
    series: readonly (Omit<Series, 'values'> & Readonly<{ of(minute: Minute): number }>)[];
  }>;

/** A chart by minute. Minutes before the service started are gaps, with a sentence below. */
export function MinuteChart({ minutes, sinceMs, series, ...chart }: MinuteChartProps) {
  const isCounted = ({ minute }: Minute) => sinceMs !== undefined && (minute + 1) * MINUTE_MS > sinceMs;
  return (
    <>
      <Chart
        {...chart}
        timesMs={minutes.map(({ minute }) => minute * MINUTE_MS)}
        series={series.map(({ of, ...one }) => ({
          ...one,
          values: minutes.map((minute) => (isCounted(minute) ? of(minute) : null)),
        }))}
      />
      {!minutes.every(isCounted) && (
        <p class="field-hint">
          {sinceMs === undefined ? (
            'No data yet: the service has just started.'
          ) : (
            <>
              Data since the service started at <Time atMs={sinceMs} />.
            </>
          )}
        </p>
      )}
    </>
  );
}

/** Units of the drawing; the stylesheet gives it its size. */
const WIDTH = 96;
const HEIGHT = 24;

/** At least two values, the oldest first, none negative; `label` says them in words. */
type SparklineProps = Readonly<{ values: readonly number[]; label: string; tone?: Tone | undefined }>;

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

/** One point per value, of at least two, over the whole width; the highest touches the top, none lies on the ground. */
export function pointsOf(values: readonly number[]): string {
  const top = Math.max(1, ...values);
  const step = WIDTH / (values.length - 1);
  const yOf = (value: number) => HEIGHT - 1 - (value / top) * (HEIGHT - 2);
  return values.map((value, i) => `${(i * step).toFixed(1)},${yOf(value).toFixed(1)}`).join(' ');
}
