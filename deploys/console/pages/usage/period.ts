import { DAY_MS, HOUR_MS, monthOf, monthStartMs } from '../../../usage/calendar.ts';
import type { Hours } from '../../../usage/read-usage.ts';
import type { Unit } from '../../../usage/report.ts';

/** The times that usage can be looked at, each in its unit; all end now. */
export const PERIODS = {
  '24h': { label: '24 hours', unit: 'hour' },
  '7d': { label: '7 days', unit: 'hour' },
  '30d': { label: '30 days', unit: 'day' },
  '90d': { label: '90 days', unit: 'day' },
  '12m': { label: '12 months', unit: 'month' },
} as const satisfies Readonly<Record<string, Readonly<{ label: string; unit: Unit }>>>;

export type Period = keyof typeof PERIODS;
export const PERIOD_NAMES = Object.keys(PERIODS) as readonly Period[]; // Object.keys forgets them

const DAYS: Readonly<Record<Exclude<Period, '12m'>, number>> = { '24h': 1, '7d': 7, '30d': 30, '90d': 90 };

/** The period that an address names; a week for anything else. */
export function periodFrom(text: string | null): Period {
  return PERIOD_NAMES.find((name) => name === text) ?? '7d';
}

/** Its hours, from where the first of its hours, days or months begins up to and with the hour that is now. */
export function hoursOf(period: Period, nowMs: number): Hours {
  const toHour = Math.floor(nowMs / HOUR_MS) + 1;
  if (period === '12m') return { fromHour: monthStartMs(monthOf(nowMs).month - 11) / HOUR_MS, toHour };
  if (PERIODS[period].unit === 'hour') return { fromHour: toHour - 24 * DAYS[period], toHour };
  return { fromHour: 24 * (Math.floor(nowMs / DAY_MS) - DAYS[period] + 1), toHour };
}
