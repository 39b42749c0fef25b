import type { Store } from '../../shared/store/open.ts';
import { type Cell, type Counters, makeWhole } from './cell.ts';

type Place = [hour: number, accountId: number, keyId: string, method: string, node: string];

/**
 * Writes cells of `node` as absolute values: to write one again changes nothing. A cell that does not know what the
 * ledger holds is made whole first, so that a restart counts on. Throws when the ledger cannot be read or written.
 */
export function createCellRows(ledger: Store, node: string): (cell: Cell) => void {
  const read = ledger.prepare<Counters, Place>(`
    SELECT calls, credits, refunded, errors, bytes_out AS bytesOut, refused, charged, returned FROM usage_hours
    WHERE hour = ? AND account_id = ? AND key_id = ? AND method = ? AND node = ?`);
  const put = ledger.prepare<null, [...Place, ...number[]]>(`
    INSERT INTO usage_hours VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET calls = excluded.calls, credits = excluded.credits, refunded = excluded.refunded,
      errors = excluded.errors, bytes_out = excluded.bytes_out, refused = excluded.refused,
      charged = excluded.charged, returned = excluded.returned`);

  return function write(cell) {
    const { hour, accountId, keyId, method } = cell;
    if (!cell.isWhole) makeWhole(cell, read.get(hour, accountId, keyId, method, node));
    const { calls, credits, refunded, errors, bytesOut, refused, charged, returned } = cell;
    const counters = [calls, credits, refunded, errors, bytesOut, refused, charged, returned];
    put.run(hour, accountId, keyId, method, node, ...counters);
  };
}
