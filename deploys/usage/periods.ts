import { HOUR_MS, monthOf } from './calendar.ts';
import type { Hours } from './read-usage.ts';

/** Periods of one kind, from the first up to and without the second. */
export type Range = Readonly<{ from: number; to: number }>;

/** Ten years: what is before is left out. */
const HOURS_MAX = 24 * 3_660;

/** SQL for every period of a `Range`: with the account they are the beginning of each usage table's primary key. */
export const EACH =
  'WITH RECURSIVE each(at) AS (SELECT $from WHERE $from < $to UNION ALL SELECT at + 1 FROM each WHERE at + 1 < $to)';

/** The hours (0), days (1) or months (2) that the hours touch. */
export function rangeIn(table: number, { fromHour, toHour }: Hours): Range {
  const from = Math.max(fromHour, toHour - HOURS_MAX);
  if (table === 0 || from >= toHour) return { from, to: toHour };
  const place = (hour: number) => (table === 1 ? Math.floor(hour / 24) : monthOf(hour * HOUR_MS).month);
  return { from: place(from), to: place(toHour - 1) + 1 };
}
