import type { Clock } from '../../shared/clock.ts';
import { USAGE_COUNTERS, type UsageCounter } from '../../shared/ledger/cells.ts';
import type { Log } from '../../shared/log.ts';
import type { Store } from '../../shared/store/open.ts';
import { DAY_MS, HOUR_MS, monthOf, UNITS } from './calendar.ts';
import { type CellSource, createTakeDrained } from './redis-cells.ts';

type UsageDeps = Readonly<{
  /** The ledger, on a connection that writes and on another that reads. */
  ledger: Store;
  reader: Store;
  /** The name of an account, `undefined` when there is none. */
  nameOf(accountId: number): string | undefined;
  /** Told after every reconciliation by how many credits the books differ. */
  noteMismatch(credits: number): void;
  clock: Clock;
  log: Log;
  source?: CellSource | undefined;
}>;

/** Between two portions of the roll-up a gateway may write. */
const PAUSE_MS = 50;
/** Waiting for a gateway's write stops everything else here, and a ledger that is busy is tried again. */
const BUSY_MS = 100;
/** Within this time usage in flight from other hosts has arrived. */
const DRAINED_MS = 10_000;

/** At the start and once a day rolls hours up and compares cells with the journal; after a failure, an hour later. */
export async function maintainUsage(deps: UsageDeps, signal: AbortSignal): Promise<void> {
  const { ledger, clock, source } = deps;
  ledger.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
  const draining = source?.run(createTakeDrained(ledger), signal);
  const rollUp = createRollUp(ledger);
  while (!signal.aborted) {
    const rolled = await attempt('rolling usage up', deps, async () => {
      while (rollUp(clock.now()) && !signal.aborted) await clock.sleep(PAUSE_MS, signal);
    });
    const compared = await attempt('comparing usage with the journal', deps, () => reconcile(deps, signal));
    await clock.sleep(rolled && compared ? DAY_MS : HOUR_MS, signal);
  }
  await draining;
}

async function reconcile(deps: UsageDeps, signal: AbortSignal): Promise<void> {
  const { log, nameOf, noteMismatch } = deps;
  const mismatches = await lastingMismatches(deps, signal);
  if (mismatches === undefined) return;
  noteMismatch(mismatches.reduce((sum, { usage, journal }) => sum + Math.abs(usage - journal), 0));
  for (const { accountId, ...books } of mismatches)
    log.error({ account: nameOf(accountId) ?? accountId, ...books }, 'usage and journal differ');
}

/** While cells of other hosts are drained the books may differ for a moment: a difference counts that is the same a while later. */
async function lastingMismatches({ reader, clock, source }: UsageDeps, signal: AbortSignal) {
  const first = await findMismatches(reader, clock, signal);
  if (first === undefined || first.length === 0 || source === undefined) return first;
  await clock.sleep(DRAINED_MS, signal);
  const second = await findMismatches(reader, clock, signal);
  return second?.filter((now) => first.some((before) => isSame(now, before)));
}

function isSame(now: Mismatch, before: Mismatch): boolean {
  const isOfSame = now.accountId === before.accountId && now.node === before.node;
  return isOfSame && now.usage - now.journal === before.usage - before.journal;
}

async function attempt(what: string, { log }: UsageDeps, act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    log.error({ err: error }, `${what} broke`);
    return false;
  }
}

/** Hours are kept for 90 days, then days for two years, then months for ever. */
const HOURS_KEPT_MS = 90 * DAY_MS;
const DAYS_KEPT_MS = 730 * DAY_MS;

/** Rows moved in one transaction: a few milliseconds, in which a gateway that has a charge to write waits. */
const PORTION = 500;

/** Their columns, and counters by their column. */
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
  const takeOf = <Row>(table: string, columns: string) =>
    ledger.prepare<Row, [number]>(`
      DELETE FROM ${table} WHERE (${columns}) IN (
        SELECT ${columns} FROM ${table} WHERE ${columns.split(',')[0]} < ? ORDER BY ${columns} LIMIT ${PORTION}) RETURNING *`);
  const takeHours = takeOf<HourRow>('usage_hours', 'hour, account_id, key_id, method, node');
  const takeDays = takeOf<DayRow>('usage_days', 'day, account_id, key_id, method');
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
      addToDay(UNITS.day.of(row.hour), row);
      if (row.charged > 0 || row.returned > 0)
        settle.run(row.account_id, row.node, row.charged, row.returned);
    }
    const days = takeDays.all(monthOf(now - DAYS_KEPT_MS).firstDay);
    for (const row of days) addToMonth(monthOf(row.day * DAY_MS).month, row);
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

/** An account's credits through one node as the cells and as the journal have them, where these differ. */
type Mismatch = Readonly<{ accountId: number; node: string; usage: number; journal: number }>;

/** Rows between two pauses, so that a long ledger holds up nothing else. */
const ROWS_AT_ONCE = 5_000;
const READ_PAUSE_MS = 1;

/**
 * Compares, per account and node, what the cells say was taken from allowances with what the journal says, to the
 * unit. One statement reads both, so it sees one instant of a ledger that is being written; a gateway writes both in
 * one transaction. `undefined` when `signal` aborted. Throws when the ledger cannot be read.
 */
export async function findMismatches(ledger: Store, clock: Clock, signal: AbortSignal) {
  const entries = ledger.prepare<Mismatch, []>(`
    SELECT account_id AS accountId, node, 0 AS usage, charged - refunded AS journal FROM spent
    UNION ALL SELECT account_id, node, charged - returned, 0 FROM usage_settled
    UNION ALL SELECT account_id, node, charged - returned, 0 FROM usage_hours WHERE charged > 0`);
  const sums = new Map<string, Mismatch>();
  let rows = 0;
  for (const entry of entries.iterate()) {
    const name = `${entry.accountId} ${entry.node}`;
    const { usage, journal } = sums.get(name) ?? { usage: 0, journal: 0 };
    sums.set(name, { ...entry, usage: usage + entry.usage, journal: journal + entry.journal });
    if (++rows % ROWS_AT_ONCE === 0) await clock.sleep(READ_PAUSE_MS, signal);
    if (signal.aborted) return undefined;
  }
  return [...sums.values()].filter(({ usage, journal }) => usage !== journal);
}
