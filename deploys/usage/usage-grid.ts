import type { Store } from '../../shared/store/open.ts';
import { monthOfDay } from './calendar.ts';
import { EACH, type Range, rangeIn } from './periods.ts';
import type { Hours } from './read-usage.ts';
import type { Unit, Whose } from './report.ts';

/** What usage is told apart by. */
export type Dimension = 'method' | 'key';

/** What a chart can show of usage; `credits` less what was given back. */
export const MEASURES = ['calls', 'credits', 'errors', 'refused'] as const;
export type Measure = (typeof MEASURES)[number];

/** Counts of one method or key in one hour, day or month since 1970 (UTC). `name` is empty for all that were not asked for by name. */
export type GridCell = Readonly<{ at: number; name: string }> & Readonly<Record<Measure, number>>;

export type GridWish = Readonly<{
  /** One account's, and of it only one key's or one method's when given. */
  whose: Whose;
  hours: Hours;
  unit: Unit;
  by: Dimension;
  /** Those that stand for themselves; the others are summed up. */
  names: readonly string[];
}>;

type Values = Range &
  Readonly<{ accountId: number; keyId: string | null; method: string | null; names: string }>;

const COLUMNS = { method: 'method', key: 'key_id' } as const;

/** Reads usage as one cell for each period and name. A name may come in several cells of a period. */
export function createUsageGrid(ledger: Store): (wish: GridWish) => readonly GridCell[] {
  const prepared = (table: string, at: string, by: Dimension) =>
    ledger.prepare<GridCell, Values>(`${EACH}
      SELECT ${at} AS at, CASE WHEN ${COLUMNS[by]} IN (SELECT value FROM json_each($names)) THEN ${COLUMNS[by]} ELSE '' END AS name,
        sum(calls) AS calls, sum(credits - refunded) AS credits, sum(errors) AS errors, sum(refused) AS refused
      FROM each CROSS JOIN ${table} ON ${table.replace('usage_', '').replace(/s$/, '')} = each.at AND account_id = $accountId
      WHERE key_id = coalesce($keyId, key_id) AND method = coalesce($method, method)
      GROUP BY 1, 2`);
  const of = (by: Dimension) => ({
    hourly: prepared('usage_hours', 'hour', by),
    daysOfHours: prepared('usage_hours', 'hour / 24', by),
    daily: prepared('usage_days', 'day', by),
    monthly: prepared('usage_months', 'month', by),
  });
  const statements = { method: of('method'), key: of('key') };

  return function usageGrid({ whose: { accountId, keyId = null, method = null }, hours, unit, by, names }) {
    const { hourly, daysOfHours, daily, monthly } = statements[by];
    const values = (table: 0 | 1 | 2) => ({
      ...rangeIn(table, hours),
      accountId,
      keyId,
      method,
      names: JSON.stringify(names),
    });
    if (unit === 'hour') return hourly.all(values(0));
    const days = [...daysOfHours.all(values(0)), ...daily.all(values(1))];
    if (unit === 'day') return days;
    return [...days.map((cell) => ({ ...cell, at: monthOfDay(cell.at) })), ...monthly.all(values(2))];
  };
}
