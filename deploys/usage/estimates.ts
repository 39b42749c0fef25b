import { DAY_MS, HOUR_MS } from './calendar.ts';
import type { Counts, UsageReport } from './report.ts';

/** How long what is left lasts at one pace, in milliseconds; `undefined` when nothing is spent. */
export type Forecast = Readonly<{ lastDay: number | undefined; lastWeek: number | undefined }>;

type Allowance = Readonly<{ accountId: number; creditsLeft: number; createdAtMs: number }>;

/** When an account's credits end, at the pace of its last 24 hours and of its last 7 days; of less when it is younger. */
export function forecastOf(
  report: Pick<UsageReport, 'spent'>,
  { accountId, creditsLeft, createdAtMs }: Allowance,
  nowMs: number,
): Forecast {
  const toHour = Math.floor(nowMs / HOUR_MS) + 1;

  function atPaceOf(days: number): number | undefined {
    const fromHour = toHour - 24 * days;
    const spent = report.spent(accountId, { fromHour, toHour });
    if (spent <= 0) return undefined;
    const overMs = Math.max(HOUR_MS, nowMs - Math.max(createdAtMs, fromHour * HOUR_MS));
    return (creditsLeft / spent) * overMs;
  }

  return { lastDay: atPaceOf(1), lastWeek: atPaceOf(7) };
}

/** `less than an hour`, `about 5 hours`, `about 3 days`, `more than a year`. */
export function lastsText(ms: number): string {
  if (ms < HOUR_MS) return 'less than an hour';
  if (ms < 2 * DAY_MS) return counted(Math.round(ms / HOUR_MS), 'hour');
  if (ms < 365 * DAY_MS) return counted(Math.round(ms / DAY_MS), 'day');
  return 'more than a year';
}

/** `about 3 days at the pace of the last 24 h`; `undefined` when nothing is spent. */
export function forecastText({ lastDay, lastWeek }: Forecast): string | undefined {
  if (lastDay !== undefined) return `${lastsText(lastDay)} at the pace of the last 24 h`;
  return lastWeek === undefined ? undefined : `${lastsText(lastWeek)} at the pace of the last 7 days`;
}

function counted(n: number, unit: string): string {
  return `about ${n} ${unit}${n === 1 ? '' : 's'}`;
}

/** A quantile of how long answers took to begin, estimated; `over`: more than what is told apart. */
type Latency = Readonly<{ kind: 'about'; ms: number } | { kind: 'over'; ms: number }>;

const CLASSES = [
  ['within10Ms', 0, 10],
  ['within50Ms', 10, 50],
  ['within250Ms', 50, 250],
  ['within1S', 250, 1_000],
] as const;

type Classes = Pick<Counts, 'within10Ms' | 'within50Ms' | 'within250Ms' | 'within1S' | 'slower'>;

/**
 * The time within which the share `quantile` (0 to 1) of answers began: that of its class, and in it as if answers were
 * evenly spread. `undefined` when nothing was answered.
 */
export function latencyOf(counts: Classes, quantile: number): Latency | undefined {
  const answered = CLASSES.reduce((sum, [name]) => sum + counts[name], counts.slower);
  if (answered === 0) return undefined;
  let wanted = quantile * answered;
  for (const [name, fromMs, toMs] of CLASSES) {
    const inClass = counts[name];
    if (inClass > 0 && wanted <= inClass)
      return { kind: 'about', ms: Math.ceil(fromMs + (toMs - fromMs) * (wanted / inClass)) };
    wanted -= inClass;
  }
  return { kind: 'over', ms: 1_000 };
}

/**
 * The same as a bound that holds for sure: the end of the class that the quantile is in. `undefined` when nothing was
 * answered.
 */
export function boundOf(counts: Classes, quantile: number): Latency | undefined {
  const latency = latencyOf(counts, quantile);
  const bound = CLASSES.find(([, , toMs]) => latency?.kind === 'about' && latency.ms <= toMs);
  return bound === undefined ? latency : { kind: 'about', ms: bound[2] };
}
