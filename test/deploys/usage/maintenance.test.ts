import { describe, expect, test } from 'bun:test';
import type { CellSource } from '../../../deploys/usage/redis-cells.ts';
import { createRollUp, findMismatches, maintainUsage } from '../../../deploys/usage/maintenance.ts';
import { systemClock } from '../../../shared/clock.ts';
import { USAGE_COUNTER_NAMES, USAGE_COUNTERS } from '../../../shared/ledger/cells.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { silentLog } from '../../started/gateway.ts';
import { cellOf, createTakeCells, DAY_MS, HOUR_MS, startLedger } from './ledger.ts';

const never = new AbortController().signal;

const mismatches = (ledger: Parameters<typeof findMismatches>[0]) =>
  findMismatches(ledger, systemClock, never);

describe('the books agree', () => {
  test('when the cells of all hours and keys of a node add up to its journal, and what was spent before usage was counted', async () => {
    using books = startLedger();
    expect(await mismatches(books.ledger)).toEqual([]);
    books.ledger.run("INSERT INTO spent VALUES (1, 'n1', 1000, 1)");
    books.ledger.run(
      'INSERT INTO usage_settled SELECT * FROM spent; UPDATE spent SET charged = charged + 12',
    );
    createTakeCells(books.ledger)([
      cellOf({ charged: 5 }),
      cellOf({ hour: 1, keyId: 'k2', charged: 7 }),
      cellOf({ accountId: 2, credits: 1_000, refunded: 5 }), // of an account without a credit limit
    ]);
    expect(await mismatches(books.ledger)).toEqual([]);
  });

  test('at any instant, also while a gateway writes on', async () => {
    using books = startLedger();
    const take = createTakeCells(books.ledger);
    const cells = Array.from({ length: 12_000 }, (_, i) => cellOf({ keyId: `k${i}`, charged: 1 }));
    const write = books.ledger.transaction((charged: number) => {
      take(cells.map((cell) => ({ ...cell, charged })));
      books.ledger.run("INSERT OR REPLACE INTO spent VALUES (1, 'n1', ?, 0)", [charged * cells.length]);
    });
    write(1);
    let paused = 0;
    const clock = {
      ...systemClock,
      // The pauses are when others write.
      sleep: async () => write(2 + paused++),
    };
    expect(await findMismatches(books.connect(), clock, never)).toEqual([]);
    expect(paused).toBeGreaterThan(1);
  });
});

test('a difference of one credit is found and said with the account and the node', async () => {
  using books = startLedger();
  createTakeCells(books.ledger)([
    cellOf({ charged: 5 }),
    cellOf({ node: 'n2', charged: 5 }),
    cellOf({ accountId: 2, charged: 1 }),
  ]);
  books.ledger.run("INSERT INTO spent VALUES (1, 'n1', 5, 0), (1, 'n2', 6, 0), (3, 'n1', 1, 0)");
  expect(await mismatches(books.ledger)).toEqual([
    { accountId: 1, node: 'n2', usage: 5, journal: 6 },
    { accountId: 3, node: 'n1', usage: 0, journal: 1 },
    { accountId: 2, node: 'n1', usage: 1, journal: 0 },
  ]);
});

/** The daily work over a ledger, on a clock that stands still. */
function tended(source?: CellSource) {
  const books = startLedger();
  const clock = createVirtualClock();
  const lines: unknown[] = [];
  const noted: number[] = [];
  const over = new AbortController();
  const tending = maintainUsage(
    {
      ledger: books.ledger,
      reader: books.connect(),
      nameOf: (id) => (id === 1 ? 'Acme' : undefined),
      noteMismatch: (credits) => void noted.push(credits),
      clock,
      log: silentLog(lines),
      ...(source && { source }),
    },
    over.signal,
  );
  return {
    ...books,
    clock,
    lines,
    noted,
    async [Symbol.asyncDispose]() {
      over.abort();
      await tending;
      books[Symbol.dispose]();
    },
  };
}

describe('every day', () => {
  test('old hours are rolled up, and the books compared: what differs is logged and measured until it is mended', async () => {
    await using usage = tended();
    await usage.clock.advance(1);
    const now = Math.floor(usage.clock.now() / HOUR_MS);
    createTakeCells(usage.ledger)([cellOf({ hour: now }), cellOf({ hour: now - 100 * 24 })]);
    usage.ledger.run("INSERT INTO spent VALUES (1, 'n1', 1, 0), (7, 'n2', 0, 3)");
    await usage.clock.advance(DAY_MS);
    expect(usage.lines).toEqual([
      [{ account: 'Acme', node: 'n1', usage: 0, journal: 1 }, 'usage and journal differ'],
      [{ account: 7, node: 'n2', usage: 0, journal: -3 }, 'usage and journal differ'],
    ]);
    usage.ledger.run('DELETE FROM spent');
    await usage.clock.advance(DAY_MS);
    expect(usage.noted).toEqual([0, 4, 0]);
    for (const table of ['hours', 'days'])
      expect(usage.values(`SELECT count(*) FROM usage_${table}`)).toEqual([[1]]);
  });

  test('with other hosts only a difference counts that is the same ten seconds later', async () => {
    await using usage = tended({ run: async () => undefined });
    await usage.clock.advance(1);
    usage.ledger.run("INSERT INTO spent VALUES (1, 'n1', 3, 0), (1, 'n2', 5, 0)");
    await usage.clock.advance(DAY_MS);
    expect(usage.noted).toEqual([0]);
    usage.ledger.run("UPDATE spent SET charged = 9 WHERE node = 'n2'");
    await usage.clock.advance(10_000);
    expect(usage.noted).toEqual([0, 3]);
  });

  test('a ledger that another holds is left alone, and tried again after an hour', async () => {
    await using usage = tended();
    await usage.clock.advance(1);
    const gateway = usage.connect();
    gateway.run('BEGIN IMMEDIATE');
    await usage.clock.advance(DAY_MS);
    expect(JSON.stringify(usage.lines)).toContain('rolling usage up broke');
    gateway.run('ROLLBACK');
    const before = usage.noted.length;
    await usage.clock.advance(HOUR_MS);
    expect([usage.noted.length, usage.lines.length]).toEqual([before + 1, 1]);
  });
});

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
  test('stay for 90 whole days and then become days, over all nodes; not a minute earlier (§5)', () => {
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

test('days stay for two years and then become months, for ever, with every counter (§5)', () => {
  using books = started();
  // 730 days before NOW_MS is 2024-11-20: days of that month stay.
  const counts = Object.fromEntries(USAGE_COUNTER_NAMES.map((name, n) => [name, n + 1]));
  books.take([
    cellOf({ ...counts, hour: hourAt(2024, 9, 1, 0) }),
    cellOf({ ...counts, hour: hourAt(2024, 9, 31, 23) }),
    cellOf({ hour: hourAt(2024, 10, 1, 0), calls: 7 }),
    cellOf({ hour: hourAt(1999, 11, 31, 0), calls: 3 }),
  ]);
  const before = books.total();
  books.rollAll();
  expect(books.values('SELECT month, calls FROM usage_months ORDER BY month')).toEqual([
    [29 * 12 + 11, 3],
    [54 * 12 + 9, 2],
  ]);
  const columns = Object.values(USAGE_COUNTERS).join();
  expect(books.values(`SELECT ${columns} FROM usage_months ORDER BY month DESC LIMIT 1`)).toEqual([
    USAGE_COUNTER_NAMES.map((_name, n) => 2 * (n + 1)),
  ]);
  expect(books.values('SELECT day, calls FROM usage_days')).toEqual([[Date.UTC(2024, 10, 1) / DAY_MS, 7]]);
  expect(books.total()).toEqual(before);
});
