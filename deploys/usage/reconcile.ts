import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';

/** An account's credits through one node, where the two books that hold them differ. */
export type Mismatch = Readonly<{ accountId: number; node: string; inCells: number; inJournal: number }>;

type Entry = Readonly<{ account_id: number; node: string; in_cells: number; in_journal: number }>;

/** Rows between two pauses, so that a long ledger holds up nothing else. */
const ROWS_AT_ONCE = 5_000;
const PAUSE_MS = 1;

/**
 * Compares, per account and node, what the cells say was taken from allowances with what the journal says, to the
 * unit. One statement reads both, so it sees one instant of a ledger that is being written; a gateway writes both in
 * one transaction. `undefined` when `signal` aborted. Throws when the ledger cannot be read.
 */
export async function findMismatches(
  ledger: Store,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Mismatch[] | undefined> {
  const entries = ledger.prepare<Entry, []>(`
    SELECT account_id, node, 0 AS in_cells, charged - refunded AS in_journal FROM spent
    UNION ALL SELECT account_id, node, charged - returned, 0 FROM usage_settled
    UNION ALL SELECT account_id, node, charged - returned, 0 FROM usage_hours WHERE charged > 0`);
  const sums = new Map<string, Mismatch>();
  let rows = 0;
  for (const { account_id, node, in_cells, in_journal } of entries.iterate()) {
    const name = `${account_id} ${node}`;
    const sum = sums.get(name) ?? { accountId: account_id, node, inCells: 0, inJournal: 0 };
    sums.set(name, {
      ...sum,
      inCells: sum.inCells + in_cells,
      inJournal: sum.inJournal + in_journal,
    });
    if (++rows % ROWS_AT_ONCE === 0) await clock.sleep(PAUSE_MS, signal);
    if (signal.aborted) return undefined;
  }
  return [...sums.values()].filter(({ inCells, inJournal }) => inCells !== inJournal);
}
