import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createUsageReport } from '../../../deploys/usage/report.ts';
import { createRollUp } from '../../../deploys/usage/tend.ts';
import { explained } from '../explained.ts';
import { cellOf, createTakeCells, HOUR_MS, startLedger } from './ledger.ts';

const NOW_MS = Date.UTC(2026, 10, 20, 13);
const NOW = NOW_MS / HOUR_MS;
const OLD = Date.UTC(2026, 5, 1) / HOUR_MS;

let books: ReturnType<typeof startLedger>;
let report: ReturnType<typeof createUsageReport>;

beforeEach(() => {
  books = startLedger();
  createTakeCells(books.ledger)([
    cellOf({ hour: NOW, calls: 1, within10Ms: 1, charged: 9, returned: 2 }),
    cellOf({ hour: NOW, calls: 2, node: 'n2' }),
    cellOf({ hour: NOW, calls: 4, keyId: 'k2' }),
    cellOf({ hour: NOW - 1, calls: 8, method: 'getBlock', errors: 3 }),
    cellOf({ hour: NOW - 24, calls: 16, charged: 5 }),
    cellOf({ hour: OLD, calls: 32 }),
    cellOf({ hour: OLD + 5, calls: 64, keyId: 'k2' }),
    cellOf({ hour: NOW, calls: 1_000_000, accountId: 2 }),
    cellOf({ hour: OLD, calls: 1_000_000, accountId: 2 }),
  ]);
  const rollUp = createRollUp(books.ledger);
  while (rollUp(NOW_MS));
  report = createUsageReport(books.ledger);
});
afterEach(() => books[Symbol.dispose]());

const ONE = { accountId: 1 };
const calls = (points: readonly { at: number; counts: { calls: number } }[]) =>
  points.filter(({ counts }) => counts.calls > 0).map(({ at, counts }) => [at, counts.calls]);

test('a series of one account has every hour, over all keys, methods and nodes, or of one of them', () => {
  const hours = { fromHour: NOW - 24, toHour: NOW + 1 };
  const points = report.series(ONE, hours);
  expect(points.map(({ at }) => at)).toEqual(Array.from({ length: 25 }, (_, i) => NOW - 24 + i));
  expect(calls(points)).toEqual([
    [NOW - 24, 16],
    [NOW - 1, 8],
    [NOW, 7],
  ]);
  expect(points[1]?.counts).toMatchObject({ calls: 0, credits: 0, slower: 0 });
  expect(calls(report.series({ ...ONE, keyId: 'k2' }, hours))).toEqual([[NOW, 4]]);
  expect(calls(report.series({ ...ONE, method: 'getBlock' }, hours))).toEqual([[NOW - 1, 8]]);
});

test('parts are by method and by key, the most calls first, wherever they stand', () => {
  const hours = { fromHour: OLD, toHour: NOW + 1 };
  const named = (parts: readonly { name: string; counts: { calls: number } }[]) =>
    parts.map(({ name, counts }) => [name, counts.calls]);
  expect(named(report.byMethod(ONE, hours))).toEqual([
    ['getSlot', 119],
    ['getBlock', 8],
  ]);
  expect(named(report.byKey(ONE, hours))).toEqual([
    ['k2', 68],
    ['k1', 59],
  ]);
  expect(report.sum(ONE, hours)).toMatchObject({ calls: 127, errors: 3, within10Ms: 1 });
  expect(report.sum({ accountId: 3 }, hours).calls).toBe(0);
});

test('what was spent is what was charged to the allowance less what was given back', () => {
  expect(report.spent(1, { fromHour: NOW - 24, toHour: NOW + 1 })).toBe(12);
  expect(report.spent(1, { fromHour: NOW - 23, toHour: NOW + 1 })).toBe(7);
  expect(report.spent(9, { fromHour: 0, toHour: NOW + 1 })).toBe(0);
});

test('rows are found by period and account in the primary key, and nothing else is read', () => {
  const found = explained(books.ledger, (store) => {
    const { series, byMethod, byKey, spent } = createUsageReport(store);
    const hours = { fromHour: NOW, toHour: NOW + 1 };
    for (const read of [series, byMethod, byKey]) read(ONE, hours);
    spent(1, hours);
  });
  expect(found.length).toBe(6);
  for (const { steps } of found) {
    const table = steps.filter((step) => step.includes('usage_'));
    expect(table).toHaveLength(1);
    expect(table[0]).toMatch(/^SEARCH usage_(\w+) USING PRIMARY KEY \((hour|day)=\? AND account_id=\?/);
  }
});
