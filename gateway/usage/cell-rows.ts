import { CELL_COLUMNS, CELL_COUNTER_NAMES, CELL_COUNTERS } from '../../shared/ledger/counters.ts';
import type { Store } from '../../shared/store/open.ts';
import { type Cell, type Counters, makeWhole } from './cell.ts';

type Place = [hour: number, accountId: number, keyId: string, method: string, node: string];

const COUNTERS = CELL_COUNTER_NAMES.map((name) => `${CELL_COUNTERS[name]} AS ${name}`).join(', ');
const SET = CELL_COUNTER_NAMES.map((name) => `${CELL_COUNTERS[name]} = excluded.${CELL_COUNTERS[name]}`).join(
  ', ',
);

/**
 * Writes cells of `node` as absolute values: to write one again changes nothing. A cell that does not know what the
 * ledger holds is made whole first, so that a restart counts on. Throws when the ledger cannot be read or written.
 */
export function createCellRows(ledger: Store, node: string): (cell: Cell) => void {
  const read = ledger.prepare<Counters, Place>(`
    SELECT ${COUNTERS} FROM usage_hours
    WHERE hour = ? AND account_id = ? AND key_id = ? AND method = ? AND node = ?`);
  const put = ledger.prepare<null, [...Place, ...number[]]>(`
    INSERT INTO usage_hours (${CELL_COLUMNS.join(', ')}) VALUES (${CELL_COLUMNS.map(() => '?').join(', ')})
    ON CONFLICT DO UPDATE SET ${SET}`);

  return function write(cell) {
    const { hour, accountId, keyId, method } = cell;
    if (!cell.isWhole) makeWhole(cell, read.get(hour, accountId, keyId, method, node));
    put.run(hour, accountId, keyId, method, node, ...CELL_COUNTER_NAMES.map((name) => cell[name]));
  };
}
