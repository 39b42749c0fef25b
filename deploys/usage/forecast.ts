import { DAY_MS, HOUR_MS } from './calendar.ts';
import type { UsageReport } from './report.ts';

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
