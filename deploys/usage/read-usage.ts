import type { Store } from '../../shared/store/open.ts';
import { type Hours, UNITS, touched } from './calendar.ts';

/** Usage of one key and method in a period, over all nodes. */
export type Used = Readonly<{
  /** `2026-11-21T19:00Z`, or for what is kept no finer, the whole `2026-08-01` or `2024-07`. */
  period: string;
  accountId: number;
  key_id: string;
  method: string;
  calls: number;
  /** Credits charged less those given back. */
  credits: number;
  errors: number;
  bytes_out: number;
  refused: number;
}>;

const SUMS = `account_id AS accountId, key_id, method, sum(calls) AS calls, sum(credits - refunded) AS credits,
  sum(errors) AS errors, sum(bytes_out) AS bytes_out, sum(refused) AS refused`;

type UsageRow = Omit<Used, 'period'> & Readonly<{ at: number }>;
type RowKey = Pick<UsageRow, 'at' | 'accountId' | 'key_id' | 'method'>;

/** Rows in one page. No transaction is open between two pages, so a slow reader does not keep the log file from shrinking. */
const PAGE = 1_000;

/** Reads the usage of these hours, the oldest first, in pages. A day or month that is kept whole is given whole. */
export function* readUsage(ledger: Store, hours: Hours, accountId?: number): Generator<readonly Used[]> {
  for (const unit of ['month', 'day', 'hour'] as const) {
    const table = {
      table: `usage_${unit}s`,
      column: unit,
      textOf: UNITS[unit].text,
      ...touched(hours, unit),
    };
    yield* accountId === undefined ? readAllOf(ledger, table) : readOneOf(ledger, accountId, table);
  }
}

type Table = ReturnType<typeof touched> &
  Readonly<{ table: string; column: string; textOf: (at: number) => string }>;

function* readAllOf(ledger: Store, { table, column, from, to, textOf }: Table): Generator<readonly Used[]> {
  const page = ledger.prepare<UsageRow, RowKey & { to: number }>(`
    SELECT ${column} AS at, ${SUMS} FROM ${table}
    WHERE (${column}, account_id, key_id, method) > ($at, $accountId, $key_id, $method)
      AND ${column} < $to
    GROUP BY ${column}, account_id, key_id, method ORDER BY ${column}, account_id, key_id, method LIMIT ${PAGE}`);
  let last: RowKey = { at: from - 1, accountId: Number.MAX_SAFE_INTEGER, key_id: '', method: '' };
  for (;;) {
    const rows = page.all({ ...last, to });
    const end = rows.at(-1);
    if (end === undefined) return;
    yield rows.map(({ at: period, ...used }) => ({ period: textOf(period), ...used }));
    last = end;
  }
}

/** One account's rows of a table, period by period, each by its place in the primary key: no other account's are passed over. */
function* readOneOf(
  ledger: Store,
  accountId: number,
  { table, column, from, to, textOf }: Table,
): Generator<readonly Used[]> {
  const ofPeriod = ledger.prepare<Omit<UsageRow, 'at'>, [number, number]>(`
    SELECT ${SUMS} FROM ${table} WHERE ${column} = ? AND account_id = ?
    GROUP BY key_id, method ORDER BY key_id, method`);
  const kept = ledger.prepare<{ first: number | null; last: number | null }, []>(`
    SELECT (SELECT min(${column}) FROM ${table}) AS first, (SELECT max(${column}) FROM ${table}) AS last`);
  const { first, last } = kept.get() ?? { first: null, last: null };
  const end = Math.min(to, (last ?? -1) + 1);
  for (let at = Math.max(from, first ?? 0); at < end; at++) {
    const rows = ofPeriod.all(at, accountId);
    if (rows.length > 0) yield rows.map((used) => ({ period: textOf(at), ...used }));
  }
}

/** The columns of usage wherever it is given as rows. */
export const USAGE_COLUMNS = 'hour account key_id method calls credits errors bytes_out refused'.split(' ');

export const CSV_HEAD = `${USAGE_COLUMNS.join(',')}\n`;

export function usageRecord(used: Used, account: string) {
  const { period: hour, key_id, method, calls, credits, errors, bytes_out, refused } = used;
  return { hour, account, key_id, method, calls, credits, errors, bytes_out, refused };
}

export function usageCells(used: Used, account: string): string[] {
  return Object.values(usageRecord(used, account)).map(String);
}

export function csvLine(used: Used, account: string): string {
  return `${usageCells(used, harmless(account)).map(quoted).join(',')}\n`;
}

/** The beginning of a formula, also in full width, behind spaces and quotes; at a cell's beginning or behind what may part cells. */
const FORMULA = /(^|[;|\t\r\n])(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

/** Customers name their accounts: a spreadsheet takes a text behind an apostrophe for no formula. */
function harmless(name: string): string {
  return name.replaceAll(FORMULA, "$1'");
}

/** RFC 4180, and for spreadsheets that part cells by something else than commas. */
function quoted(cell: string): string {
  return /[",;|\t\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
