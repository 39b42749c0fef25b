/** @jsxImportSource preact */
import type { Tone } from './tone.ts';

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
