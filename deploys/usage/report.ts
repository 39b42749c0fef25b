import { USAGE_COUNTER_NAMES, USAGE_COUNTERS, type UsageCounter } from '../../shared/ledger/cells.ts';
import type { Store } from '../../shared/store/open.ts';
import { DAY_MS, HOUR_MS, type Hours, lastHours, monthOf, touched, type Unit } from './calendar.ts';

/** Sums of counters; `refunded` is of `credits`, and the five from `within10Ms` to `slower` are how fast answers began. */
export type Counts = Readonly<Record<UsageCounter, number>>;

/** One account's, and of it only one key's or one method's when given. */
export type Whose = Readonly<{ accountId: number; keyId?: string; method?: string }>;

/** Counts of an hour since 1970 (UTC); of a method or of a key. */
type Point = Readonly<{ at: number; counts: Counts }>;
export type UsagePart = Readonly<{ name: string; counts: Counts }>;

export type Dimension = 'method' | 'key';

/** The measures of usage that a chart can show; `credits` less those given back. */
export const MEASURES = ['calls', 'credits', 'errors', 'refused'] as const;
export type Measure = (typeof MEASURES)[number];

/** Counts of one method or key in one hour, day or month since 1970 (UTC); `name` is empty for all others together. */
export type GridCell = Readonly<{ at: number; name: string }> & Readonly<Record<Measure, number>>;

type GridQuery = Readonly<{
  whose: Whose;
  hours: Hours;
  unit: Unit;
  by: Dimension;
  /** Those that stand for themselves; the others are summed up. */
  names: readonly string[];
}>;

/** SQL for what is read, and for the period and the name that it is added up by. */
type SumColumns = Readonly<{ sums: string; at: string; name: string }>;

const COUNTS = USAGE_COUNTER_NAMES.map((name) => `sum(${USAGE_COUNTERS[name]}) AS ${name}`).join(', ');
const MEASURED =
  'sum(calls) AS calls, sum(credits - refunded) AS credits, sum(errors) AS errors, sum(refused) AS refused';
const COLUMNS = { method: 'method', key: 'key_id' } as const;

/** SQL for every period that is touched: with the account they are the beginning of each usage table's primary key. */
const EACH =
  'WITH RECURSIVE each(at) AS (SELECT $from WHERE $from < $to UNION ALL SELECT at + 1 FROM each WHERE at + 1 < $to)';

export function createUsageReport(ledger: Store) {
  /** Months are of no use to pages: they are older than what any page shows. */
  function read<Row>(
    kept: 'hour' | 'day',
    { sums, at, name }: SumColumns,
    { accountId, keyId, method }: Whose,
    hours: Hours,
    names: readonly string[] = [],
  ): readonly (Row & { at: number; name: string })[] {
    const statement = ledger.query<
      Row & { at: number; name: string },
      Record<string, string | number | null>
    >(
      `${EACH} SELECT ${at} AS at, ${name} AS name, ${sums}
      FROM each CROSS JOIN usage_${kept}s ON ${kept} = each.at AND account_id = $accountId
      WHERE key_id = coalesce($keyId, key_id) AND method = coalesce($method, method) GROUP BY 1, 2`,
    );
    const only = { accountId, keyId: keyId ?? null, method: method ?? null };
    return statement.all({ ...touched(hours, kept), ...only, names: JSON.stringify(names) });
  }

  /** The most calls first. */
  const partsBy = (by: Dimension) => (whose: Whose, hours: Hours) => {
    const sums = { sums: COUNTS, at: '0', name: COLUMNS[by] };
    return merged((['hour', 'day'] as const).flatMap((kept) => read<Counts>(kept, sums, whose, hours)));
  };
  const byMethod = partsBy('method');

  return {
    /** A point for every hour, the oldest first; zeros where nothing was used. */
    series(whose: Whose, hours: Hours): readonly Point[] {
      const rows = read<Counts>('hour', { sums: COUNTS, at: 'hour', name: "''" }, whose, hours);
      const sums = new Map<number, Counts>(rows.map((row) => [row.at, row]));
      return Array.from({ length: hours.toHour - hours.fromHour }, (_, i) => {
        const at = hours.fromHour + i;
        return { at, counts: sums.get(at) ?? NOTHING };
      });
    },
    byMethod,
    byKey: partsBy('key'),
    sum: (whose: Whose, hours: Hours): Counts => sumOf(byMethod(whose, hours).map(({ counts }) => counts)),
    /** Credits taken from an allowance in hours that are kept as hours, less what was given back. */
    spent(accountId: number, hours: Hours): number {
      const sums = { sums: 'sum(charged - returned) AS spent', at: '0', name: "''" };
      return read<{ spent: number }>('hour', sums, { accountId }, hours)[0]?.spent ?? 0;
    },
    /** One cell for each period and name. A name may come in several cells of a period. */
    grid({ whose, hours, unit, by, names }: GridQuery): readonly GridCell[] {
      const column = COLUMNS[by];
      const name = `CASE WHEN ${column} IN (SELECT value FROM json_each($names)) THEN ${column} ELSE '' END`;
      const cells = (kept: 'hour' | 'day', at: string) =>
        read<Record<Measure, number>>(kept, { sums: MEASURED, at, name }, whose, hours, names);
      if (unit === 'hour') return cells('hour', 'hour');
      const days = [...cells('hour', 'hour / 24'), ...cells('day', 'day')];
      return unit === 'day' ? days : days.map((cell) => ({ ...cell, at: monthOf(cell.at * DAY_MS).month }));
    },
  };
}

/** Usage of one account in the last months. An hour that is kept no finer than in its day counts with the whole of it, and not in a series. */
export type UsageReport = ReturnType<typeof createUsageReport>;

const NOTHING = Object.fromEntries(USAGE_COUNTER_NAMES.map((name) => [name, 0])) as Counts; // all of them

export function sumOf(counts: readonly Counts[]): Counts {
  const total = (name: UsageCounter) => counts.reduce((sum, { [name]: more }) => sum + more, 0);
  return Object.fromEntries(USAGE_COUNTER_NAMES.map((name) => [name, total(name)])) as Counts; // all of them
}

/** Parts of one name as one, the most calls first. */
export function merged(rows: readonly (Counts & Readonly<{ name: string }>)[]): readonly UsagePart[] {
  return [...Map.groupBy(rows, ({ name }) => name)]
    .map(([name, some]) => ({ name, counts: sumOf(some) }))
    .sort((a, b) => b.counts.calls - a.counts.calls);
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
  function atPaceOf(days: number): number | undefined {
    const hours = lastHours(24 * days, nowMs);
    const spent = report.spent(accountId, hours);
    if (spent <= 0) return undefined;
    const overMs = Math.max(HOUR_MS, nowMs - Math.max(createdAtMs, hours.fromHour * HOUR_MS));
    return (creditsLeft / spent) * overMs;
  }

  return { lastDay: atPaceOf(1), lastWeek: atPaceOf(7) };
}

/** `less than an hour`, `about 5 hours`, `about 3 days`, `more than a year`. */
function lastsText(ms: number): string {
  if (ms < HOUR_MS) return 'less than an hour';
  if (ms < 2 * DAY_MS) return counted(Math.round(ms / HOUR_MS), 'hour');
  if (ms < 365 * DAY_MS) return counted(Math.round(ms / DAY_MS), 'day');
  return 'more than a year';
}

/** `about 3 days left at the last 24 hours' rate`; `undefined` when nothing is spent. */
export function forecastText({ lastDay, lastWeek }: Forecast): string | undefined {
  if (lastDay !== undefined) return `${lastsText(lastDay)} left at the last 24 hours' rate`;
  return lastWeek === undefined ? undefined : `${lastsText(lastWeek)} left at the last 7 days' rate`;
}

function counted(n: number, unit: string): string {
  return `about ${n} ${unit}${n === 1 ? '' : 's'}`;
}

/** The time within which a share of answers began; `over`: later than the last class. */
type Latency = Readonly<{ kind: 'about' | 'over'; ms: number }>;

const CLASSES = [
  ['within10Ms', 10],
  ['within50Ms', 50],
  ['within250Ms', 250],
  ['within1S', 1_000],
] as const;

type Classes = Pick<Counts, (typeof CLASSES)[number][0] | 'slower'>;

/** The end of the latency class that the share `quantile` (0 to 1) of answers is in; `undefined` when nothing was answered. */
export function boundOf(counts: Classes, quantile: number): Latency | undefined {
  const answered = CLASSES.reduce((sum, [name]) => sum + counts[name], counts.slower);
  if (answered === 0) return undefined;
  let above = quantile * answered;
  for (const [name, ms] of CLASSES) {
    above -= counts[name];
    if (counts[name] > 0 && above <= 0) return { kind: 'about', ms };
  }
  return { kind: 'over', ms: 1_000 };
}
