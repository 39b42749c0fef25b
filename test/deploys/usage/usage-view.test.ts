import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readUsage } from '../../../deploys/usage/read-usage.ts';
import type { Unit } from '../../../deploys/usage/calendar.ts';
import { createUsageReport } from '../../../deploys/usage/report.ts';
import { createRollUp } from '../../../deploys/usage/maintenance.ts';
import {
  createReadingTurns,
  createReadUsageView,
  type Reader,
  slicesOf,
  type UsageView,
  type UsageQuery,
} from '../../../deploys/usage/usage-view.ts';
import { systemClock } from '../../../shared/clock.ts';
import { explained } from '../explained.ts';
import { cellOf, createTakeCells, HOUR_MS, startLedger } from './ledger.ts';
import { monotonicOf } from '../../fakes/chain-clock.ts';

const NOW_MS = Date.UTC(2026, 10, 20, 13);
const NOW = NOW_MS / HOUR_MS;
const OLD = Date.UTC(2026, 5, 1) / HOUR_MS;
const YEAR = { fromHour: Date.UTC(2025, 11) / HOUR_MS, toHour: NOW + 1 };
const DAY = { fromHour: NOW - 24, toHour: NOW + 1 };
const never = new AbortController().signal;

let books: ReturnType<typeof startLedger>;
let report: ReturnType<typeof createUsageReport>;
let view: (wish: UsageQuery) => Promise<UsageView>;

beforeEach(() => {
  books = startLedger();
  createTakeCells(books.ledger)([
    cellOf({ hour: NOW, calls: 1, credits: 9, refunded: 2, within10Ms: 1, charged: 9, returned: 2 }),
    cellOf({ hour: NOW, calls: 2, node: 'n2' }),
    cellOf({ hour: NOW, calls: 4, keyId: 'k2', refused: 3 }),
    cellOf({ hour: NOW - 1, calls: 8, method: 'getBlock', errors: 5 }),
    cellOf({ hour: NOW - 24, calls: 128, charged: 5 }),
    cellOf({ hour: NOW - 24 * 40, calls: 16, method: 'getEpochInfo' }),
    cellOf({ hour: OLD, calls: 32 }),
    cellOf({ hour: OLD + 5, calls: 64, method: 'getBlock' }),
    cellOf({ hour: NOW, calls: 1_000_000, accountId: 2 }),
    cellOf({ hour: OLD, calls: 1_000_000, accountId: 2 }),
  ]);
  const rollUp = createRollUp(books.ledger);
  while (rollUp(NOW_MS));
  report = createUsageReport(books.ledger);
  const turns = createReadingTurns(systemClock);
  const read = createReadUsageView({ usage: report, turns, clock: systemClock });
  view = async (wish) => {
    const reading = await read(wish, 'u1', never);
    if (reading.kind !== 'read') throw new Error(reading.kind);
    return reading.view;
  };
});
afterEach(() => books[Symbol.dispose]());

const whose = { accountId: 1 };
const unit = 'month' as Unit;

const callsOf = (parts: readonly { name: string; counts: { calls: number } }[]) =>
  parts.map(({ name, counts }) => [name, counts.calls]);

test('usage of a year is read in parts, and every call counts once', async () => {
  const year = { whose, hours: YEAR, unit, named: 2 };
  const { total, parts, names, cells } = await view({ ...year, by: 'method' });
  expect(callsOf(parts)).toEqual([
    ['getSlot', 167],
    ['getBlock', 72],
    ['getEpochInfo', 16],
  ]);
  expect([total.calls, total.errors, total.refused]).toEqual([255, 5, 3]);
  expect(names).toEqual(['getSlot', 'getBlock']);
  expect(cells.reduce((sum, { calls }) => sum + calls, 0)).toBe(255);
  expect(cells.filter(({ name }) => name === '').map(({ calls }) => calls)).toEqual([16]);
  expect(callsOf((await view({ ...year, by: 'key' })).parts)).toEqual([
    ['k1', 251],
    ['k2', 4],
  ]);
  expect(report.sum(whose, YEAR)).toEqual(total);
  expect(report.sum({ accountId: 3 }, YEAR).calls).toBe(0);
});

test.each([
  ['in one turn when it is read in no time', 0, 1],
  ['in a turn for each part when a part takes its time', 4, 2 * slicesOf(YEAR).length],
])('usage of a year is read %s', async (_, partMs, most) => {
  let [nowMs, turns] = [0, 0];
  const read = createReadUsageView({
    usage: report,
    turns: { enter: () => ({ turn: () => Promise.resolve(void turns++), leave: () => undefined }) },
    clock: { monotonic: () => monotonicOf((nowMs += partMs)) },
  });
  await read({ whose, hours: YEAR, unit, by: 'method', named: 2 }, 'u1', never);
  expect(turns).toBe(most);
});

test('a series of one account has every hour, over all keys, methods and nodes, or of one of them', () => {
  const points = report.series(whose, DAY);
  expect(points.map(({ at }) => at)).toEqual(Array.from({ length: 25 }, (_, i) => NOW - 24 + i));
  const calls = (of: typeof points) =>
    of.filter(({ counts }) => counts.calls > 0).map(({ at, counts }) => [at - NOW, counts.calls]);
  expect(calls(points)).toEqual([
    [-24, 128],
    [-1, 8],
    [0, 7],
  ]);
  expect(points[1]?.counts).toMatchObject({ calls: 0, credits: 0, slower: 0 });
  expect(calls(report.series({ ...whose, keyId: 'k2' }, DAY))).toEqual([[0, 4]]);
});

test('what was spent is what was charged to the allowance less what was given back', () => {
  const spent = (id: number, fromHour: number) => report.spent(id, { fromHour, toHour: NOW + 1 });
  expect([spent(1, NOW - 24), spent(1, NOW - 23), spent(9, 0)]).toEqual([12, 7, 0]);
});

test.each([200, 24 * 365])('%p hours are cut where days begin, three days at once', (hours) => {
  expect(slicesOf({ fromHour: NOW - 24, toHour: NOW })).toEqual([{ fromHour: NOW - 24, toHour: NOW }]);
  const slices = slicesOf({ fromHour: NOW - hours, toHour: NOW });
  expect([slices[0]?.fromHour, slices.at(-1)?.toHour]).toEqual([NOW - hours, NOW]);
  for (const [i, { fromHour, toHour }] of slices.entries()) {
    if (i > 0) expect([fromHour, fromHour % 24]).toEqual([slices[i - 1]?.toHour ?? 0, 0]);
    // Hours are kept for 90 days, and what is older has a row a day.
    expect(toHour - fromHour).toBeLessThanOrEqual(toHour > NOW - 90 * 24 ? 72 : 720);
  }
});

test('no statement reads what is of other accounts', () => {
  const statements = explained(books.ledger, (store) => {
    const { series, byMethod, byKey, spent, grid } = createUsageReport(store);
    for (const read of [series, byMethod, byKey]) read(whose, DAY);
    spent(1, DAY);
    for (const by of ['method', 'key'] as const)
      for (const each of ['hour', 'day'] as const) grid({ whose, hours: YEAR, unit: each, by, names: [] });
    for (const _ of readUsage(store, { fromHour: 0, toHour: 1 }, 1));
  });
  expect(statements).toHaveLength(6 + 6 + 6);
  for (const { steps } of statements) {
    const tables = steps.filter((step) => step.includes('usage_'));
    expect(tables.length).toBeGreaterThan(0);
    const place = /^SEARCH usage_\w+ USING PRIMARY KEY \((?:hour|day|month)=\? AND account_id=\?/;
    // The first and the last of a table are at the ends of its key.
    const isEnd = (step: string) => step.startsWith('SEARCH') && !step.includes('(');
    expect(tables.filter((step) => !place.test(step) && !isEnd(step))).toEqual([]);
  }
});

/** Turns whose pauses last until they are told to end. */
function paused() {
  let end: (() => void) | undefined;
  const turns = createReadingTurns({
    sleep: () => new Promise((resolve) => (end = () => resolve(undefined))),
  });
  return {
    turns,
    enter(userId: string): Reader {
      const reader = turns.enter(userId);
      if (reader === undefined) throw new Error('there is no room');
      return reader;
    },
    /** Ends the pause, and lets everything run until the next. */
    async pass() {
      end?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('one user with many windows keeps another waiting for one part', async () => {
  const { enter, pass } = paused();
  const order: string[] = [];
  for (const userId of ['a', 'a', 'a', 'a', 'b'])
    void enter(userId)
      .turn(never)
      .then(() => order.push(userId));
  for (let i = 0; i < 6; i++) await pass();
  expect(order).toEqual(['a', 'a', 'b', 'a', 'a']);
});

test('one user reads in eight places at once; there is room again when one is left, and always for another user', () => {
  const { enter } = paused().turns;
  const readers = Array.from({ length: 9 }, () => enter('a'));
  expect(readers.map((reader) => reader !== undefined)).toEqual([...Array(8).fill(true), false]);
  expect(enter('b')).toBeDefined();
  readers[3]?.leave();
  expect([enter('a') !== undefined, enter('a') !== undefined]).toEqual([true, false]);
});
