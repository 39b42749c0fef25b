import { expect, test } from 'bun:test';
import { createTakeDrained, type HourCell } from '../../../deploys/usage/cell-source.ts';
import { findMismatches } from '../../../deploys/usage/reconcile.ts';
import { systemClock } from '../../../shared/clock.ts';
import { cellOf, startLedger, createTakeCells } from './ledger.ts';

test('L18 a cell that comes twice, late or out of order changes nothing, and one that is newer replaces it', () => {
  using books = startLedger();
  const take = createTakeCells(books.ledger);
  const all: HourCell[] = Array.from({ length: 20 }, (_, i) =>
    cellOf({
      calls: i,
      credits: 2 * i,
      refunded: i,
      errors: i,
      bytesOut: 9 * i,
      refused: i,
      charged: i,
      returned: i,
    }),
  );
  for (const i of [3, 1, 19, 19, 0, 7, 18]) take([all[i] ?? cellOf(), all[0] ?? cellOf()]);
  expect(books.values('SELECT * FROM usage_hours')).toEqual([
    [0, 1, 'k1', 'getSlot', 'n1', 19, 38, 19, 19, 171, 19, 19, 19],
  ]);
});

test('cells of two nodes stand side by side', () => {
  using books = startLedger();
  createTakeCells(books.ledger)([cellOf(), cellOf({ node: 'n2' })]);
  expect(books.total()).toEqual([2, 2, 0, 0, 20, 0]);
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
