import { describe, expect, test } from 'bun:test';
import type { CellSource } from '../../../deploys/usage/redis-cells.ts';
import { findMismatches, tendUsage } from '../../../deploys/usage/tend.ts';
import { systemClock } from '../../../shared/clock.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { silentLog } from '../../started/gateway.ts';
import { cellOf, DAY_MS, HOUR_MS, startLedger, createTakeCells } from './ledger.ts';

const never = new AbortController().signal;

describe('the books agree', () => {
  test.each([
    ['when both are empty', [], ''],
    [
      'when the cells of all hours and keys of a node add up to its journal',
      [cellOf({ charged: 5 }), cellOf({ hour: 1, keyId: 'k2', charged: 7, returned: 2 })],
      "(1, 'n1', 13, 3)",
    ],
    ['when what was used has no credit limit', [cellOf({ credits: 1_000, refunded: 5 })], ''],
  ])('%s', async (_name, cells, spent) => {
    using books = startLedger();
    createTakeCells(books.ledger)(cells);
    if (spent !== '') books.ledger.run(`INSERT INTO spent VALUES ${spent}`);
    expect(await findMismatches(books.ledger, systemClock, never)).toEqual([]);
  });

  test('about what was spent before usage was counted', async () => {
    using books = startLedger();
    books.ledger.run("INSERT INTO spent VALUES (1, 'n1', 1000, 1)");
    books.ledger.run('INSERT INTO usage_settled SELECT * FROM spent; UPDATE spent SET charged = charged + 5');
    createTakeCells(books.ledger)([cellOf({ charged: 5 })]);
    expect(await findMismatches(books.ledger, systemClock, never)).toEqual([]);
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
  expect(await findMismatches(books.ledger, systemClock, never)).toEqual([
    { accountId: 1, node: 'n2', inCells: 5, inJournal: 6 },
    { accountId: 3, node: 'n1', inCells: 0, inJournal: 1 },
    { accountId: 2, node: 'n1', inCells: 1, inJournal: 0 },
  ]);
});

/** The daily work over a ledger, on a clock that stands still. */
function tended(source?: CellSource) {
  const books = startLedger();
  const clock = createVirtualClock();
  const lines: unknown[] = [];
  const noted: number[] = [];
  const over = new AbortController();
  const tending = tendUsage(
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
  test('the books are compared, and what differs is logged and measured until it is mended', async () => {
    await using usage = tended();
    await usage.clock.advance(1);
    usage.ledger.run("INSERT INTO spent VALUES (1, 'n1', 1, 0), (7, 'n2', 0, 3)");
    await usage.clock.advance(DAY_MS);
    expect(usage.lines).toEqual([
      [{ account: 'Acme', node: 'n1', usage: 0, journal: 1 }, 'usage and journal differ'],
      [{ account: 7, node: 'n2', usage: 0, journal: -3 }, 'usage and journal differ'],
    ]);
    usage.ledger.run('DELETE FROM spent');
    await usage.clock.advance(DAY_MS);
    expect(usage.noted).toEqual([0, 4, 0]);
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

  test('old hours are rolled up', async () => {
    await using usage = tended();
    const now = Math.floor(usage.clock.now() / HOUR_MS);
    createTakeCells(usage.ledger)([cellOf({ hour: now }), cellOf({ hour: now - 100 * 24 })]);
    await usage.clock.advance(DAY_MS + 1);
    expect(usage.values('SELECT count(*) FROM usage_hours')).toEqual([[1]]);
    expect(usage.values('SELECT count(*) FROM usage_days')).toEqual([[1]]);
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

test('cells of other hosts are taken as they come', async () => {
  using books = startLedger();
  const over = new AbortController();
  const source: CellSource = {
    run: async (take) => {
      take({ cells: [cellOf()], spent: [] });
      take({ cells: [cellOf()], spent: [] });
      over.abort();
    },
  };
  await tendUsage(
    {
      ledger: books.ledger,
      reader: books.connect(),
      nameOf: () => undefined,
      noteMismatch: () => undefined,
      clock: createVirtualClock(),
      log: silentLog(),
      source,
    },
    over.signal,
  );
  expect(books.values('SELECT calls FROM usage_hours')).toEqual([[1]]);
});
