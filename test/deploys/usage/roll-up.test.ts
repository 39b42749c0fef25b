import { describe, expect, test } from 'bun:test';
import { createRollUp } from '../../../deploys/usage/tend.ts';
import { USAGE_COUNTER_NAMES, USAGE_COUNTERS } from '../../../shared/ledger/counters.ts';
import { cellOf, DAY_MS, HOUR_MS, startLedger, createTakeCells } from './ledger.ts';

/** 2026-11-20T13:00Z; an hour that is just being counted keeps the newest row from being old. */
const NOW_MS = Date.UTC(2026, 10, 20, 13);
const NOW_HOUR = NOW_MS / HOUR_MS;
const hourAt = (...at: [number, number, number, number]) => Date.UTC(...at) / HOUR_MS;

function started() {
  const books = startLedger();
  const take = createTakeCells(books.ledger);
  take([cellOf({ hour: NOW_HOUR, method: 'now', calls: 0, credits: 0, bytesOut: 0 })]);
  const rollUp = createRollUp(books.ledger);
  const rollAll = (nowMs = NOW_MS) => {
    while (rollUp(nowMs));
  };
  return { ...books, take, rollUp, rollAll };
}

describe('hours', () => {
  test('stay for 90 whole days and then become days, over all nodes; not a minute earlier', () => {
    using books = started();
    // 90 days before NOW_MS is 2026-08-22: that day stays, the day before it goes.
    books.take([
      cellOf({ hour: hourAt(2026, 7, 21, 0) }),
      cellOf({ hour: hourAt(2026, 7, 21, 23), node: 'n2', calls: 2, credits: 20, refunded: 3, errors: 4 }),
      cellOf({ hour: hourAt(2026, 7, 21, 23), method: 'getBlock', refused: 5, bytesOut: 7 }),
      cellOf({ hour: hourAt(2026, 7, 22, 0), calls: 9 }),
    ]);
    const before = books.total();
    books.rollAll();
    expect(books.values('SELECT hour, calls FROM usage_hours WHERE calls > 0')).toEqual([
      [hourAt(2026, 7, 22, 0), 9],
    ]);
    expect(
      books.values(`SELECT day, account_id, key_id, method, calls, credits, refunded, errors, bytes_out, refused
        FROM usage_days ORDER BY method`),
    ).toEqual([
      [Date.UTC(2026, 7, 21) / DAY_MS, 1, 'k1', 'getBlock', 1, 1, 0, 0, 7, 5],
      [Date.UTC(2026, 7, 21) / DAY_MS, 1, 'k1', 'getSlot', 3, 21, 3, 4, 20, 0],
    ]);
    expect(books.total()).toEqual(before);
  });

  test('keep every counter, also when they become months', () => {
    using books = started();
    const counts = Object.fromEntries(USAGE_COUNTER_NAMES.map((name, n) => [name, n + 1]));
    books.take([
      cellOf({ ...counts, hour: hourAt(2023, 1, 1, 0) }),
      cellOf({ ...counts, hour: hourAt(2023, 1, 1, 1) }),
    ]);
    books.rollAll();
    expect(books.values(`SELECT ${Object.values(USAGE_COUNTERS).join()} FROM usage_months`)).toEqual([
      USAGE_COUNTER_NAMES.map((_name, n) => 2 * (n + 1)),
    ]);
  });

  test('once rolled up are rolled up: again changes nothing', () => {
    using books = started();
    books.take([cellOf({ hour: hourAt(2026, 1, 1, 0), charged: 1 })]);
    books.rollAll();
    const before = books.values('SELECT * FROM usage_days, usage_settled');
    books.rollAll();
    expect(books.values('SELECT * FROM usage_days, usage_settled')).toEqual(before);
  });

  test('keep what they said of the journal, per account and node', () => {
    using books = started();
    books.take([
      cellOf({ hour: hourAt(2026, 1, 1, 0), charged: 5, returned: 1 }),
      cellOf({ hour: hourAt(2026, 1, 1, 1), charged: 7 }),
      cellOf({ hour: hourAt(2026, 1, 1, 1), node: 'n2', charged: 3 }),
      cellOf({ hour: hourAt(2026, 1, 1, 1), accountId: 2 }),
    ]);
    books.rollAll();
    expect(books.values('SELECT * FROM usage_settled')).toEqual([
      [1, 'n1', 12, 1],
      [1, 'n2', 3, 0],
    ]);
  });

  test('that are being counted in are never closed by a clock that is ahead', () => {
    using books = started();
    books.take([cellOf({ hour: NOW_HOUR })]);
    books.rollAll(NOW_MS + 400 * DAY_MS);
    expect(books.values('SELECT count(*) FROM usage_hours WHERE calls > 0')).toEqual([[1]]);
  });

  test('are moved in portions, each a transaction of its own: a death between two loses and doubles nothing', () => {
    using books = started();
    const cells = Array.from({ length: 1_200 }, (_, i) =>
      cellOf({ hour: hourAt(2026, 1, 1, 0), keyId: `k${i}` }),
    );
    books.take(cells);
    const before = books.total();
    expect(books.rollUp(NOW_MS)).toBe(true);
    expect(books.values('SELECT count(*) FROM usage_days')).toEqual([[500]]);
    expect(books.total()).toEqual(before);
    // Within a portion: the last row to be added fails, and the whole portion stays where it was.
    books.ledger.run(
      "CREATE TRIGGER broken BEFORE INSERT ON usage_days WHEN new.key_id = 'k999' BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    expect(() => books.rollAll()).toThrow('no');
    expect(books.total()).toEqual(before);
    books.ledger.run('DROP TRIGGER broken');
    books.rollAll();
    expect(books.values('SELECT count(*) FROM usage_days')).toEqual([[1_200]]);
    expect(books.total()).toEqual(before);
  });
});

test('days stay for two years and then become months, for ever', () => {
  using books = started();
  // 730 days before NOW_MS is 2024-11-20: days of that month stay.
  books.take([
    cellOf({ hour: hourAt(2024, 9, 1, 0) }),
    cellOf({ hour: hourAt(2024, 9, 31, 23), calls: 2, credits: 4 }),
    cellOf({ hour: hourAt(2024, 10, 1, 0), calls: 7 }),
    cellOf({ hour: hourAt(1999, 11, 31, 0), calls: 3 }),
  ]);
  const before = books.total();
  books.rollAll();
  expect(books.values('SELECT month, calls, credits FROM usage_months ORDER BY month')).toEqual([
    [29 * 12 + 11, 3, 1],
    [54 * 12 + 9, 3, 5],
  ]);
  expect(books.values('SELECT day, calls FROM usage_days')).toEqual([[Date.UTC(2024, 10, 1) / DAY_MS, 7]]);
  expect(books.total()).toEqual(before);
});
