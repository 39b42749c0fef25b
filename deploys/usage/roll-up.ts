import { USAGE_COUNTERS, type UsageCounter } from '../../shared/ledger/counters.ts';
import type { Store } from '../../shared/store/open.ts';
import { DAY_MS, dayOfHour, HOUR_MS, monthOf, monthOfDay } from './calendar.ts';

/** Hours are kept for 90 days, then days for two years, then months for ever. */
const HOURS_KEPT_MS = 90 * DAY_MS;
const DAYS_KEPT_MS = 730 * DAY_MS;

/** Rows moved in one transaction: a few milliseconds, in which a gateway that has a charge to write waits. */
const PORTION = 500;

/** Their place, and counters by their column. */
type Counters = Readonly<
  { account_id: number; key_id: string; method: string } & Record<UsageColumn, number>
>;
type UsageColumn = (typeof USAGE_COUNTERS)[UsageCounter];
type HourRow = Counters & Readonly<{ hour: number; node: string; charged: number; returned: number }>;
type DayRow = Counters & Readonly<{ day: number }>;

/**
 * Puts hours that are old enough into days, and days into months: what is added and what is deleted is one transaction,
 * so a row is counted once however often this runs or dies. Moves a portion and gives whether there may be more.
 * Throws when the ledger is busy for too long.
 */
export function createRollUp(ledger: Store): (nowMs: number) => boolean {
  const newest = ledger.prepare<{ hour: number | null }, []>('SELECT max(hour) AS hour FROM usage_hours');
  const takeHours = ledger.prepare<HourRow, [number]>(`
    DELETE FROM usage_hours WHERE (hour, account_id, key_id, method, node) IN (
      SELECT hour, account_id, key_id, method, node FROM usage_hours WHERE hour < ?
      ORDER BY hour, account_id, key_id, method, node LIMIT ${PORTION}) RETURNING *`);
  const takeDays = ledger.prepare<DayRow, [number]>(`
    DELETE FROM usage_days WHERE (day, account_id, key_id, method) IN (
      SELECT day, account_id, key_id, method FROM usage_days WHERE day < ?
      ORDER BY day, account_id, key_id, method LIMIT ${PORTION}) RETURNING *`);
  const addToDay = addTo(ledger, 'usage_days');
  const addToMonth = addTo(ledger, 'usage_months');
  const settle = ledger.prepare<null, [number, string, number, number]>(`
    INSERT INTO usage_settled VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET charged = charged + excluded.charged, returned = returned + excluded.returned`);

  /** Now, or the newest hour's end when that is earlier: a clock that is ahead must not close hours that are counted in. */
  function soberNow(nowMs: number): number {
    const hour = newest.get()?.hour;
    return hour === undefined || hour === null ? nowMs : Math.min(nowMs, (hour + 1) * HOUR_MS);
  }

  const move = ledger.transaction((nowMs: number): boolean => {
    const now = soberNow(nowMs);
    const hours = takeHours.all(24 * Math.floor((now - HOURS_KEPT_MS) / DAY_MS));
    for (const row of hours) {
      addToDay(dayOfHour(row.hour), row);
      if (row.charged > 0 || row.returned > 0)
        settle.run(row.account_id, row.node, row.charged, row.returned);
    }
    const days = takeDays.all(monthOf(now - DAYS_KEPT_MS).firstDay);
    for (const row of days) addToMonth(monthOfDay(row.day), row);
    return hours.length === PORTION || days.length === PORTION;
  });
  return move.immediate;
}

function addTo(ledger: Store, table: 'usage_days' | 'usage_months'): (period: number, row: Counters) => void {
  const columns = Object.values(USAGE_COUNTERS);
  const period = table === 'usage_days' ? 'day' : 'month';
  const add = ledger.prepare<null, [number, number, string, string, ...number[]]>(`
    INSERT INTO ${table} (${[period, 'account_id', 'key_id', 'method', ...columns].join(', ')})
    VALUES (?, ?, ?, ?, ${columns.map(() => '?').join(', ')})
    ON CONFLICT DO UPDATE SET ${columns.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')}`);
  return (at, row) =>
    void add.run(at, row.account_id, row.key_id, row.method, ...columns.map((column) => row[column]));
}
