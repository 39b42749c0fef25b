import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { type Hours, lastHours } from './calendar.ts';

/** Sums over a time; `credits` less those given back. */
export type Totals = Readonly<{ calls: number; credits: number; refused: number; errors: number }>;

type Traffic = Readonly<{
  /** When it was read, in Unix milliseconds. */
  atMs: number;
  total: Totals;
  /** The most calls first. */
  byMethod: readonly Readonly<{ method: string; done: Totals }>[];
  /** `plan` is the plan an account has now; `undefined`: none, or the account is gone. */
  byPlan: readonly Readonly<{ plan: string | undefined; done: Totals }>[];
  /** The first twenty by each figure. */
  top: Readonly<
    Record<'calls' | 'credits' | 'refused', readonly Readonly<{ accountId: number; done: Totals }>[]>
  >;
}>;

/** Traffic of all accounts in the last hours, the one that is now included; the same for some time. Rejects when the ledger cannot be read. */
export type ReadTraffic = (hours: 1 | 24) => Promise<Traffic>;

const TOP = 20;
/** How long a result is reused: a day of many cells takes a second or two of work. */
const KEPT_MS = { 1: 10_000, 24: 60_000 } as const;

type TrafficRow = Totals & Readonly<{ accountId: number; method: string }>;
type TrafficDeps = Readonly<{
  ledger: Store;
  clock: Clock;
  planOf(accountId: number): string | undefined;
  /** Aborts when the app stops. */
  signal: AbortSignal;
}>;

/** Adds up the hours of all accounts, in portions; who asks while it is being added up waits for the same. */
export function createReadTraffic({ ledger, clock, planOf, signal }: TrafficDeps): ReadTraffic {
  const readPortions = createReadPortions<TrafficRow>(ledger, clock, {
    select: `account_id AS accountId, method, sum(calls) AS calls, sum(credits - refunded) AS credits,
      sum(refused) AS refused, sum(errors) AS errors`,
    group: 'account_id, method',
  });
  const kept = new Map<number, Readonly<{ atMs: number; traffic: Promise<Traffic> }>>();

  return function readTraffic(hours) {
    const nowMs = clock.monotonic();
    const last = kept.get(hours);
    if (last !== undefined && nowMs - last.atMs < KEPT_MS[hours]) return last.traffic;
    const traffic = addUp(hours);
    kept.set(hours, { atMs: nowMs, traffic });
    traffic.catch(() => kept.delete(hours));
    return traffic;
  };

  async function addUp(hours: number): Promise<Traffic> {
    const atMs = clock.now();
    const [accounts, methods] = [new Map<number, Totals>(), new Map<string, Totals>()];
    for await (const rows of readPortions(lastHours(hours, atMs), signal))
      for (const { accountId, method, ...done } of rows) {
        accounts.set(accountId, plus(accounts.get(accountId), done));
        methods.set(method, plus(methods.get(method), done));
      }
    const plans = new Map<string | undefined, Totals>();
    for (const [accountId, done] of accounts) {
      const plan = planOf(accountId);
      plans.set(plan, plus(plans.get(plan), done));
    }
    const top = (figure: keyof Totals) =>
      [...accounts]
        .filter(([, done]) => done[figure] > 0)
        .sort(([, a], [, b]) => b[figure] - a[figure])
        .slice(0, TOP)
        .map(([accountId, done]) => ({ accountId, done }));
    return {
      atMs,
      total: [...methods.values()].reduce(plus, NONE),
      byMethod: byCalls([...methods].map(([method, done]) => ({ method, done }))),
      byPlan: byCalls([...plans].map(([plan, done]) => ({ plan, done }))),
      top: { calls: top('calls'), credits: top('credits'), refused: top('refused') },
    };
  }
}

const NONE: Totals = { calls: 0, credits: 0, refused: 0, errors: 0 };

function plus(a: Totals = NONE, b: Totals): Totals {
  return {
    calls: a.calls + b.calls,
    credits: a.credits + b.credits,
    refused: a.refused + b.refused,
    errors: a.errors + b.errors,
  };
}

function byCalls<Part extends Readonly<{ done: Totals }>>(parts: Part[]): readonly Part[] {
  return parts.sort((a, b) => b.done.calls - a.done.calls);
}

/** A sum: SQL for the columns of a row, and for what makes a group of cells one row. */
type Summing = Readonly<{ select: string; group: string }>;

/** Cells summed at once: one or two milliseconds, in which everything else here waits. */
const PORTION = 2_000;
const PAUSE_MS = 1;

type CellPosition = [hour: number, accountId: number, keyId: string, method: string, node: string];
const POSITION = 'hour, account_id, key_id, method, node';

/** Reads the hours of all accounts in portions, by their primary key, with a pause between them. Throws when it cannot. */
export function createReadPortions<Row>(ledger: Store, clock: Clock, { select, group }: Summing) {
  const endOf = ledger.prepare<object, [...CellPosition, number]>(`
    SELECT ${POSITION} FROM usage_hours WHERE (${POSITION}) > (?, ?, ?, ?, ?) AND hour < ?
    ORDER BY ${POSITION} LIMIT 1 OFFSET ${PORTION - 1}`);
  const sumsOf = ledger.prepare<Row, [...CellPosition, ...CellPosition]>(`
    SELECT ${select} FROM usage_hours
    WHERE (${POSITION}) > (?, ?, ?, ?, ?) AND (${POSITION}) <= (?, ?, ?, ?, ?) GROUP BY ${group}`);

  /** Sums of the cells in these hours, in parts: a group may come in several. Ends early when `signal` aborts. */
  return async function* readPortions({ fromHour, toHour }: Hours, signal: AbortSignal) {
    let last = lastOf(fromHour - 1);
    while (!signal.aborted) {
      const [end] = endOf.values(...last, toHour) as CellPosition[]; // its columns
      yield sumsOf.all(...last, ...(end ?? lastOf(toHour - 1)));
      if (end === undefined) return;
      last = end;
      await clock.sleep(PAUSE_MS, signal);
    }
  };
}

/** Behind every cell of an hour. */
function lastOf(hour: number): CellPosition {
  return [hour, Number.MAX_SAFE_INTEGER, '\u{10FFFF}', '', ''];
}
