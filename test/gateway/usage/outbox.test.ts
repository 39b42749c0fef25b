import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { createOutbox, noteUnsent, type Outbox } from '../../../gateway/usage/outbox.ts';
import { CELL_COUNTER_NAMES, CELL_COUNTERS, NO_HOUR } from '../../../shared/ledger/cells.ts';
import type { Store } from '../../../shared/store/open.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

let folder: ReturnType<typeof temporaryFolder>;
let ledger: Store;
let outbox: Outbox;
const open = () => opened(join(folder.path, 'ledger.db'), LEDGER_MIGRATIONS);
beforeEach(() => {
  folder = temporaryFolder();
  ledger = open();
  noteUnsent(ledger);
  outbox = createOutbox(ledger);
  ledger.run("INSERT INTO nodes VALUES ('n1', 1)");
});
afterEach(() => {
  ledger.close();
  folder[Symbol.dispose]();
});

/** Writes a cell as a gateway does. */
function write(calls: number, hour = 5, node = 'n1', to = ledger): void {
  to.run(
    `INSERT INTO usage_hours (hour, account_id, key_id, method, node, calls, credits, refunded, errors, bytes_out, refused, charged, returned)
     VALUES (?1, 1, 'k1', 'getSlot', ?2, ?3, 0, 0, 0, 0, 0, ?3, 0) ON CONFLICT DO UPDATE SET calls = excluded.calls, charged = excluded.charged`,
    [hour, node, calls],
  );
}
function spend(charged: number): void {
  ledger.run(
    "INSERT INTO spent VALUES (1, 'n1', ?, 0) ON CONFLICT DO UPDATE SET charged = excluded.charged",
    [charged],
  );
}
/** Of each that waits its hour, its calls, and what was charged. */
const shown = () =>
  outbox.some(10).map(({ hour, counters, spent }) => [hour, counters?.split(',')[0], spent.split(',')[0]]);

test('a cell waits from its write until it is sent, with what was spent at that instant', () => {
  ledger.transaction(() => (write(3), spend(3)))();
  expect(shown()).toEqual([
    [NO_HOUR, undefined, '3'],
    [5, '3', '3'],
  ]);
  outbox.sent(outbox.some(10));
  expect(shown()).toEqual([]);
});

test('a cell that is written again while it is sent waits again', () => {
  write(1);
  const rows = outbox.some(10);
  write(2);
  outbox.sent(rows);
  expect(shown()).toEqual([[5, '2', '0']]);
});

test('what waits is there after a restart; what was not committed never was', () => {
  write(1);
  expect(() =>
    ledger.transaction(() => {
      write(2);
      throw new Error('it died');
    })(),
  ).toThrow();
  ledger.close();
  ledger = open();
  outbox = createOutbox(ledger);
  expect(shown()).toEqual([[5, '1', '0']]);
});

test('what another connection writes, as deploys does with cells of other hosts, is not sent', () => {
  const deploys = open();
  write(1, 5, 'n2', deploys);
  deploys.close();
  expect(shown()).toEqual([]);
});

test("an hour is sent again when it is asked for, and only of this host's nodes", () => {
  write(1);
  write(7, 5, 'n2');
  outbox.sent(outbox.some(10));
  outbox.again(4);
  expect(shown()).toEqual([]);
  outbox.again(5);
  expect(shown()).toEqual([[5, '1', '0']]);
});

test('old hours are dropped when they are sent, and what they say of spendings is kept', () => {
  ledger.transaction(() => (write(3), spend(3)))();
  expect(outbox.prune(6)).toBe(false);
  expect(ledger.query('SELECT count(*) FROM usage_hours').values()).toEqual([[1]]);
  outbox.sent(outbox.some(10));
  outbox.prune(6);
  expect(ledger.query('SELECT count(*) FROM usage_hours').values()).toEqual([[0]]);
  expect(ledger.query('SELECT * FROM usage_settled').values()).toEqual([[1, 'n1', 3, 0]]);
});

test('everything that a cell counts is sent', () => {
  const columns = ledger
    .query<{ name: string }, []>("SELECT name FROM pragma_table_info('usage_hours')")
    .all();
  const places = new Set(['hour', 'account_id', 'key_id', 'method', 'node']);
  const counters = columns.map(({ name }) => name).filter((name) => !places.has(name));
  expect(CELL_COUNTER_NAMES.map((name): string => CELL_COUNTERS[name])).toEqual(counters);
});
