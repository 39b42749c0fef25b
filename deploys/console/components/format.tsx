/** @jsxImportSource preact */
import { useContext } from 'preact/hooks';
import { DAY_MS, HOUR_MS } from '../../usage/calendar.ts';
import { boundOf, type Counts } from '../../usage/report.ts';
import { Here } from './here.ts';

// Made once: a formatter per number was most of a long table's time.
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `1,234,567`; `none` where there is no number. */
export function countText(count: number | null | undefined, none = '–'): string {
  return count === null || count === undefined ? none : whole.format(count);
}

/** A share of one in percent: `0%`, `0.4%`, `12%`, and never a rounded 0 or 100. */
export function shareText(share: number): string {
  if (share > 0 && share < 0.001) return '<0.1%';
  if (share < 1 && share > 0.99) return '>99%';
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)}%`;
}

/** A duration of a request: `0.4 ms`, `38 ms`, `1.25 s`. */
export function latencyText(ms: number): string {
  if (ms < 1) return `${ms.toFixed(1)} ms`;
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(2)} s`;
}

/** `512 B`, `1.4 MB`; powers of 1000. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1_000 ** power;
  return `${power > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** `2026-11-21 22:05:09`, in UTC. */
export function utcText(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ');
}

/** How long something is or was, in its largest unit and rounded down: `45 s`, `4 min`, `3 h`, `12 d`. Never negative. */
export function spanText(spanMs: number): string {
  const span = Math.max(0, spanMs);
  if (span < MINUTE_MS) return `${Math.floor(span / SECOND_MS)} s`;
  if (span < HOUR_MS) return `${Math.floor(span / MINUTE_MS)} min`;
  if (span < 2 * DAY_MS) return `${Math.floor(span / HOUR_MS)} h`;
  return `${Math.floor(span / DAY_MS)} d`;
}

/** How far an instant is from now: `4 min ago`, `in 4 min`, `just now`. */
export function distanceText(atMs: number, nowMs: number): string {
  if (Math.abs(nowMs - atMs) < SECOND_MS) return 'just now';
  return atMs < nowMs ? `${spanText(nowMs - atMs)} ago` : `in ${spanText(atMs - nowMs)}`;
}

type Instant = Readonly<{
  atMs: number | undefined | null;
  /** Said where there is no such instant. */
  none?: string;
}>;

/** An instant in UTC. With JavaScript its tooltip has the viewer's local time. */
export function Time({ atMs, none }: Instant) {
  if (atMs === undefined || atMs === null) return <>{none}</>;
  return (
    <time dateTime={new Date(atMs).toISOString()} class="time">
      {utcText(atMs)}
      <abbr class="zone">UTC</abbr>
    </time>
  );
}

/** How far an instant is from now, with the instant itself in the tooltip. */
export function Ago({ atMs, none }: Instant) {
  const { nowMs } = useContext(Here);
  if (atMs === undefined || atMs === null) return <>{none}</>;
  return (
    <time dateTime={new Date(atMs).toISOString()} title={`${utcText(atMs)} UTC`}>
      {distanceText(atMs, nowMs)}
    </time>
  );
}

/** How fast a share of responses began, as a bound that holds: `≤ 50 ms`, `> 1.00 s`, or a dash. */
export function boundText(counts: Counts, quantile: number): string {
  const bound = boundOf(counts, quantile);
  return bound === undefined ? '–' : `${bound.kind === 'about' ? '≤' : '>'} ${latencyText(bound.ms)}`;
}
