import {
  CELL_COLUMNS,
  CELL_COUNTER_NAMES,
  CELL_COUNTERS,
  type CellCounter,
} from '../../shared/ledger/counters.ts';
import type { Store } from '../../shared/store/open.ts';

/** What one node counted in one hour of one key's method, as absolute values that only grow. */
export type HourCell = Readonly<
  { hour: number; accountId: number; keyId: string; method: string; node: string } & Record<
    CellCounter,
    number
  >
>;

/** What one node has charged to an account's allowance and given back, ever: the journal's two counters. */
export type NodeSpent = Readonly<{ accountId: number; node: string; charged: number; refunded: number }>;

/**
 * What nodes said. When a cell's `charged` or `returned` changes, the account's `spent` of the same instant belongs to
 * it: they are compared to the unit.
 */
export type Drained = Readonly<{ cells: readonly HourCell[]; spent: readonly NodeSpent[] }>;

/**
 * Where the cells of gateways on other hosts come from. Gateways on this host write them into the ledger themselves,
 * and there is no source.
 */
export type CellSource = Readonly<{
  /**
   * Hands over what changed until `signal` aborts. It may come twice, late or out of order; when `take` throws it was
   * not written, and must come again. Never rejects.
   */
  run(take: (drained: Drained) => void, signal: AbortSignal): Promise<void>;
}>;

/**
 * Takes what was drained into the ledger, all or none. The larger of two values stands, so that what comes twice or
 * late changes nothing. Throws when it cannot be written.
 */
export function createTakeDrained(ledger: Store): (drained: Drained) => void {
  const counters = CELL_COUNTER_NAMES.map((name) => `$${name}`).join(', ');
  const larger = Object.values(CELL_COUNTERS).map(
    (column) => `${column} = max(${column}, excluded.${column})`,
  );
  const putCell = ledger.prepare<null, HourCell>(`
    INSERT INTO usage_hours (${CELL_COLUMNS.join(', ')})
    VALUES ($hour, $accountId, $keyId, $method, $node, ${counters})
    ON CONFLICT DO UPDATE SET ${larger.join(', ')}`);
  const putSpent = ledger.prepare<null, NodeSpent>(`
    INSERT INTO spent (account_id, node, charged, refunded) VALUES ($accountId, $node, $charged, $refunded)
    ON CONFLICT DO UPDATE SET charged = max(charged, excluded.charged), refunded = max(refunded, excluded.refunded)`);
  const take = ledger.transaction(({ cells, spent }: Drained) => {
    for (const cell of cells) putCell.run({ ...cell });
    for (const each of spent) putSpent.run({ ...each });
  });
  return take.immediate;
}
