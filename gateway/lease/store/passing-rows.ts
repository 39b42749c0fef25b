import type { Store } from '../../../shared/store/open.ts';
import type { NodeId } from '../messages.ts';

/** What the rows of an account hold: its own numbers, and a holding per node. */
type Passing<Holding> = Readonly<{ atMs: number; nodes: ReadonlyMap<NodeId, Holding> }>;

/** States of accounts that pass, as rows: one per account, for nothing but its centre reads them. */
export type PassingRows<State> = Readonly<{
  read(accountId: number): State | undefined;
  write(accountId: number, state: State): void;
  /** Drops at most `rowsMax` rows that say no more than a new one would. */
  sweep(nowMs: number, rowsMax: number): void;
}>;

type Row = { state: string };
type Stored<State> = Omit<State, 'nodes'> & { nodes: readonly (readonly [NodeId, unknown])[] };

/** Rows of `table`, each worth keeping for `lifeMsOf` its state after its last change. */
export function createPassingRows<State extends Passing<unknown>>(
  ledger: Store,
  table: 'rates' | 'scans',
  lifeMsOf: (state: State) => number,
): PassingRows<State> {
  const select = ledger.prepare<Row, [number]>(`SELECT state FROM ${table} WHERE account_id = ?`);
  const upsert = ledger.prepare<null, [number, string, number]>(`
    INSERT INTO ${table} (account_id, state, until_ms) VALUES (?, ?, ?)
    ON CONFLICT (account_id) DO UPDATE SET state = excluded.state, until_ms = excluded.until_ms`);
  const drop = ledger.prepare<null, [number, number]>(`
    DELETE FROM ${table} WHERE account_id IN
      (SELECT account_id FROM ${table} WHERE until_ms < ? ORDER BY until_ms LIMIT ?)`);
  return {
    read(accountId) {
      const row = select.get(accountId);
      if (row === null) return undefined;
      const stored: Stored<State> = JSON.parse(row.state);
      return { ...stored, nodes: new Map(stored.nodes) } as unknown as State; // a State, as `write` wrote it
    },
    write(accountId, state) {
      const text = JSON.stringify({ ...state, nodes: [...state.nodes] });
      upsert.run(accountId, text, state.atMs + lifeMsOf(state));
    },
    sweep: (nowMs, rowsMax) => void drop.run(nowMs, rowsMax),
  };
}
