import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createOutbox, noteUnsent, type Outbox } from '../../../gateway/cluster/usage-outbox.ts';
import { CELL_COUNTER_NAMES, CELL_COUNTERS, NO_HOUR } from '../../../shared/ledger/cells.ts';
import type { Store } from '../../../shared/store/open.ts';
import { temporaryFolder } from '../../started/gateway.ts';
import { openLedger, writeCell } from '../usage/started.ts';

let folder: ReturnType<typeof temporaryFolder>;
let ledger: Store;
let outbox: Outbox;
beforeEach(() => {
  folder = temporaryFolder();
  ledger = openLedger(folder);
  noteUnsent(ledger);
  outbox = createOutbox(ledger);
  ledger.run("INSERT INTO nodes VALUES ('n1', 1)");
});
afterEach(() => {
  ledger.close();
  folder[Symbol.dispose]();
});

const write = (calls: number, node = 'n1', to = ledger) => writeCell(to, { hour: 5, node, calls });
function spend(charged: number): void {
  const again = 'ON CONFLICT DO UPDATE SET charged = excluded.charged';
  ledger.run(`INSERT INTO spent VALUES (1, 'n1', ?, 0) ${again}`, [charged]);
}
/** Of each that waits its hour, its calls, and what was charged. */
const waiting = () =>
  outbox.some(10).map(({ hour, counters, spent }) => [hour, counters?.split(',')[0], spent.split(',')[0]]);

test('a cell waits from its write until it is sent, with what was spent at that instant', () => {
  ledger.transaction(() => (write(3), spend(3)))();
  expect(waiting()).toEqual([
    [NO_HOUR, undefined, '3'],
    [5, '3', '3'],
  ]);
  outbox.sent(outbox.some(10));
  expect(waiting()).toEqual([]);
});

test('a cell that is written again while it is sent waits again', () => {
  write(1);
  const rows = outbox.some(10);
  write(2);
  outbox.sent(rows);
  expect(waiting()).toEqual([[5, '2', '0']]);
});

test("only what this host's nodes count is sent, and an hour again when that is requested", () => {
  // As deploys writes cells of other hosts.
  using deploys = openLedger(folder);
  write(7, 'n2', deploys);
  expect(waiting()).toEqual([]);
  write(1);
  outbox.sent(outbox.some(10));
  outbox.again(4);
  expect(waiting()).toEqual([]);
  outbox.again(5);
  expect(waiting()).toEqual([[5, '1', '0']]);
});

test('old hours are dropped when they are sent, and what they say of spendings is kept', () => {
  const cells = () => ledger.query('SELECT count(*) FROM usage_hours').values();
  ledger.transaction(() => (write(3), spend(3)))();
  expect([outbox.prune(6), cells()]).toEqual([false, [[1]]]);
  outbox.sent(outbox.some(10));
  outbox.prune(6);
  expect(cells()).toEqual([[0]]);
  expect(ledger.query('SELECT * FROM usage_settled').values()).toEqual([[1, 'n1', 3, 0]]);
});

test('everything that a cell counts is sent', () => {
  const columns = ledger.query("SELECT name FROM pragma_table_info('usage_hours')").values().flat();
  const places = new Set<unknown>(['hour', 'account_id', 'key_id', 'method', 'node']);
  const counters = columns.filter((name) => !places.has(name));
  expect(counters).toEqual(CELL_COUNTER_NAMES.map((name) => CELL_COUNTERS[name]));
});
