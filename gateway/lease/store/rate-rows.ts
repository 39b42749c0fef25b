import type { Store } from '../../../shared/store/open.ts';
import { type RateHolding, type RateState, rateStateLifeMs } from '../centre-rate.ts';
import type { NodeId } from '../messages.ts';

/** Rates of accounts as rows: one per account, for nothing but its centre reads them. */
export type RateRows = Readonly<{
  read(accountId: number): RateState | undefined;
  write(accountId: number, state: RateState): void;
  /** Drops at most `rowsMax` rows that say no more than a new one would. */
  sweep(nowMs: number, rowsMax: number): void;
}>;

type Row = { state: string };
type Stored = Omit<RateState, 'nodes'> & { nodes: readonly (readonly [NodeId, RateHolding])[] };

export function createRateRows(ledger: Store): RateRows {
  const select = ledger.prepare<Row, [number]>('SELECT state FROM rates WHERE account_id = ?');
  const upsert = ledger.prepare<null, [number, string, number]>(`
    INSERT INTO rates (account_id, state, until_ms) VALUES (?, ?, ?)
    ON CONFLICT (account_id) DO UPDATE SET state = excluded.state, until_ms = excluded.until_ms`);
  const drop = ledger.prepare<null, [number, number]>(`
    DELETE FROM rates WHERE account_id IN (SELECT account_id FROM rates WHERE until_ms < ? ORDER BY until_ms LIMIT ?)`);
  return {
    read(accountId) {
      const row = select.get(accountId);
      if (row === null) return undefined;
      const stored: Stored = JSON.parse(row.state);
      return { ...stored, nodes: new Map(stored.nodes) };
    },
    write(accountId, state) {
      const text = JSON.stringify({ ...state, nodes: [...state.nodes] } satisfies Stored);
      upsert.run(accountId, text, state.atMs + rateStateLifeMs(state));
    },
    sweep: (nowMs, rowsMax) => void drop.run(nowMs, rowsMax),
  };
}
