import { expect, test } from 'bun:test';
import { createTakeDrained, type HourCell } from '../../../deploys/usage/redis-cells.ts';
import { findMismatches } from '../../../deploys/usage/tend.ts';
import { CELL_COLUMNS, CELL_COUNTER_NAMES } from '../../../shared/ledger/counters.ts';
import { systemClock } from '../../../shared/clock.ts';
import { cellOf, startLedger, createTakeCells } from './ledger.ts';

test('L18 a cell that comes twice, late or out of order changes nothing, and one that is newer replaces it', () => {
  using books = startLedger();
  const take = createTakeCells(books.ledger);
  const all: HourCell[] = Array.from({ length: 20 }, (_, i) =>
    cellOf(Object.fromEntries(CELL_COUNTER_NAMES.map((name, n) => [name, i * (n + 1)]))),
  );
  for (const i of [3, 1, 19, 19, 0, 7, 18]) take([all[i] ?? cellOf(), all[0] ?? cellOf()]);
  expect(books.values(`SELECT ${CELL_COLUMNS.join()} FROM usage_hours`)).toEqual([
    [0, 1, 'k1', 'getSlot', 'n1', ...CELL_COUNTER_NAMES.map((_name, n) => 19 * (n + 1))],
  ]);
});

test('cells of two nodes stand side by side', () => {
  using books = startLedger();
  createTakeCells(books.ledger)([cellOf(), cellOf({ node: 'n2' })]);
  expect(books.total()).toMatchObject({ calls: 2, credits: 2, bytes_out: 20 });
});

test('cells are taken all or none', () => {
  using books = startLedger();
  books.ledger.run(
    "CREATE TRIGGER broken BEFORE INSERT ON usage_hours WHEN new.hour = 1 BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  expect(() => createTakeCells(books.ledger)([cellOf(), cellOf({ hour: 1 })])).toThrow('no');
  expect(books.values('SELECT * FROM usage_hours')).toEqual([]);
});

test('a journal that comes with its cells agrees with them, whatever comes twice or late', async () => {
  using books = startLedger();
  const take = createTakeDrained(books.ledger);
  const at = (charged: number, refunded: number) => ({
    cells: [cellOf({ charged, returned: refunded })],
    spent: [{ accountId: 1, node: 'n1', charged, refunded }],
  });
  for (const drained of [at(5, 0), at(9, 4), at(5, 0), at(9, 4), at(7, 1)]) take(drained);
  expect(books.values('SELECT * FROM spent')).toEqual([[1, 'n1', 9, 4]]);
  expect(await findMismatches(books.ledger, systemClock, new AbortController().signal)).toEqual([]);
});
