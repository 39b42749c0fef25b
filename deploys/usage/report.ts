import { USAGE_COUNTER_NAMES, USAGE_COUNTERS, type UsageCounter } from '../../shared/ledger/cells.ts';
import type { Store } from '../../shared/store/open.ts';
import { DAY_MS, EACH, HOUR_MS, type Hours, monthOfDay, type Range, rangeIn } from './calendar.ts';

/** What was counted; `refunded` is of `credits`, and the five from `within10Ms` to `slower` are how fast answers began. */
export type Counts = Readonly<Record<UsageCounter, number>>;

/** One account's, and of it only one key's or one method's when given. */
export type Whose = Readonly<{ accountId: number; keyId?: string; method?: string }>;

export type Unit = 'hour' | 'day' | 'month';

/** Counts of an hour, day or month since 1970 (UTC), of a method or of a key. */
type Point = Readonly<{ at: number; counts: Counts }>;
export type Part = Readonly<{ name: string; counts: Counts }>;

type Named = Counts & Readonly<{ name: string | number }>;
type Values = Readonly<{
  from: number;
  to: number;
  accountId: number;
  keyId: string | null;
  method: string | null;
}>;

const TABLES = [
  ['usage_hours', 'hour'],
  ['usage_days', 'day'],
  ['usage_months', 'month'],
] as const;
type Table = (typeof TABLES)[number];

const SUMS = USAGE_COUNTER_NAMES.map((name) => `coalesce(sum(${USAGE_COUNTERS[name]}), 0) AS ${name}`).join(
  ', ',
);

export function createUsageReport(ledger: Store) {
  const by = (expression: (period: string) => string) =>
    TABLES.map((table) => ledger.prepare<Named, Values>(groupedSql(table, expression(table[1]))));
  const [methods, keys, wholes] = [by(() => 'method'), by(() => 'key_id'), by(() => "''")];
  const periods = by((period) => period);
  const daysOfHours = ledger.prepare<Named, Values>(groupedSql(TABLES[0], 'hour / 24'));
  const spentIn = ledger.prepare<{ spent: number | null }, Pick<Values, 'from' | 'to' | 'accountId'>>(
    `${EACH} SELECT sum(charged - returned) AS spent FROM each CROSS JOIN usage_hours
     ON hour = each.at AND account_id = $accountId`,
  );

  function read(statements: typeof methods, whose: Whose, hours: Hours): readonly Named[] {
    return statements.flatMap((statement, i) => all(statement, whose, rangeIn(i, hours)));
  }

  function series(whose: Whose, hours: Hours, unit: Unit): readonly Point[] {
    const [inHours, inDays, inMonths] = [0, 1, 2].map((i) => rangeIn(i, hours));
    const [hourly, daily, monthly] = periods;
    const sums = new Map<number, Counts>();
    const put = (at: number, counts: Named) => sums.set(at, added(sums.get(at), counts));
    if (unit === 'hour') {
      for (const row of all(hourly, whose, inHours)) put(Number(row.name), row);
      return filled(sums, inHours);
    }
    const days = [...all(daysOfHours, whose, inHours), ...all(daily, whose, inDays)];
    for (const row of days) put(unit === 'day' ? Number(row.name) : monthOfDay(Number(row.name)), row);
    if (unit === 'month') for (const row of all(monthly, whose, inMonths)) put(Number(row.name), row);
    return filled(sums, unit === 'day' ? inDays : inMonths);
  }

  return {
    /** A point for every period that the hours touch, the oldest first; zeros where nothing was used. */
    series,
    /** The most calls first. */
    byMethod: (whose: Whose, hours: Hours): readonly Part[] => merged(read(methods, whose, hours)),
    byKey: (whose: Whose, hours: Hours): readonly Part[] => merged(read(keys, whose, hours)),
    sum: (whose: Whose, hours: Hours): Counts => read(wholes, whose, hours).reduce<Counts>(added, NOTHING),
    /** Credits taken from an allowance in hours that are kept as hours, less what was given back. */
    spent: (accountId: number, hours: Hours): number =>
      spentIn.get({ accountId, ...rangeIn(0, hours) })?.spent ?? 0,
  };
}

/**
 * What one account used, for charts and tables. An hour that is kept no finer than in its day or month counts with the
 * whole of it, and not in a series by hour. Periods reach back ten years at most; what is before is left out.
 */
export type UsageReport = ReturnType<typeof createUsageReport>;

function groupedSql([table, period]: Table, name: string): string {
  return `${EACH} SELECT ${name} AS name, ${SUMS} FROM each CROSS JOIN ${table}
    ON ${period} = each.at AND account_id = $accountId
    WHERE key_id = coalesce($keyId, key_id) AND method = coalesce($method, method) GROUP BY name`;
}

function all(
  statement: { all(values: Values): readonly Named[] } | undefined,
  { accountId, keyId, method }: Whose,
  range: Range | undefined,
): readonly Named[] {
  if (statement === undefined || range === undefined) return [];
  return statement.all({ ...range, accountId, keyId: keyId ?? null, method: method ?? null });
}

const NOTHING = Object.fromEntries(USAGE_COUNTER_NAMES.map((name) => [name, 0])) as Counts; // all of them

/** All of these counts together. */
export function sumOf(counts: readonly (Counts | undefined)[]): Counts {
  return counts.reduce<Counts>((sum, more) => added(sum, more), NOTHING);
}

function added(sum: Counts = NOTHING, more: Counts = NOTHING): Counts {
  return Object.fromEntries(USAGE_COUNTER_NAMES.map((name) => [name, sum[name] + more[name]])) as Counts; // all of them
}

function merged(rows: readonly Named[]): readonly Part[] {
  const parts = new Map<string, Counts>();
  for (const row of rows) parts.set(String(row.name), added(parts.get(String(row.name)), row));
  return [...parts]
    .map(([name, counts]) => ({ name, counts }))
    .sort((a, b) => b.counts.calls - a.counts.calls);
}

function filled(sums: ReadonlyMap<number, Counts>, range: Range | undefined): readonly Point[] {
  const { from, to } = range ?? { from: 0, to: 0 };
  const length = Math.max(0, to - from);
  return Array.from({ length }, (_, i) => ({ at: from + i, counts: sums.get(from + i) ?? NOTHING }));
}

/** What usage is told apart by. */
export type Dimension = 'method' | 'key';

/** What a chart can show of usage; `credits` less what was given back. */
export const MEASURES = ['calls', 'credits', 'errors', 'refused'] as const;
export type Measure = (typeof MEASURES)[number];

/** Counts of one method or key in one hour, day or month since 1970 (UTC). `name` is empty for all that were not asked for by name. */
export type GridCell = Readonly<{ at: number; name: string }> & Readonly<Record<Measure, number>>;

type GridQuery = Readonly<{
  /** One account's, and of it only one key's or one method's when given. */
  whose: Whose;
  hours: Hours;
  unit: Unit;
  by: Dimension;
  /** Those that stand for themselves; the others are summed up. */
  names: readonly string[];
}>;

type GridValues = Range &
  Readonly<{ accountId: number; keyId: string | null; method: string | null; names: string }>;

const DIMENSION_COLUMNS = { method: 'method', key: 'key_id' } as const;

/** Reads usage as one cell for each period and name. A name may come in several cells of a period. */
export function createUsageGrid(ledger: Store): (query: GridQuery) => readonly GridCell[] {
  const prepared = (table: string, at: string, by: Dimension) =>
    ledger.prepare<GridCell, GridValues>(`${EACH}
      SELECT ${at} AS at, CASE WHEN ${DIMENSION_COLUMNS[by]} IN (SELECT value FROM json_each($names)) THEN ${DIMENSION_COLUMNS[by]} ELSE '' END AS name,
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
