import type { Store } from '../../../shared/store/open.ts';
import type { CreditHolding, CreditState, Released } from '../centre-credit.ts';
import type { NodeId } from '../messages.ts';

/** Credits of accounts as rows that can be added up: one per account, and one per account and node. */
export type CreditRows = Readonly<{
  read(accountId: number): CreditState | undefined;
  /** Writes what differs from `before`. */
  write(accountId: number, before: CreditState | undefined, state: CreditState): void;
  /** Notes for the operator that credits of a node that never came back are the account's again. */
  noteReleased(accountId: number, released: Released, atMs: number): void;
}>;

type AccountRow = { revision: number; total: number; atMs: number; clockMs: number };
type NodeRow = CreditHolding & { node: NodeId };
type Numbers = [number, number, number, number, number, number, number, number];

export function createCreditRows(ledger: Store): CreditRows {
  const account = ledger.prepare<AccountRow, [number]>(
    'SELECT revision, total, at_ms AS atMs, clock_ms AS clockMs FROM credits WHERE account_id = ?',
  );
  const nodes = ledger.prepare<NodeRow, [number]>(`
    SELECT node, fence, seq, granted, returned, charged, refunded, heard_ms AS heardMs, needs_until_ms AS needsUntilMs
    FROM credit_holdings WHERE account_id = ?`);
  const putAccount = ledger.prepare<null, [number, number, number, number, number]>(`
    INSERT OR REPLACE INTO credits (account_id, revision, total, at_ms, clock_ms) VALUES (?, ?, ?, ?, ?)`);
  const putNode = ledger.prepare<null, [number, string, ...Numbers]>(`
    INSERT OR REPLACE INTO credit_holdings
      (account_id, node, fence, seq, granted, returned, charged, refunded, heard_ms, needs_until_ms)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const putReleased = ledger.prepare<null, [number, string, number, number]>(
    'INSERT INTO credit_releases (account_id, node, credits, at_ms) VALUES (?, ?, ?, ?)',
  );
  return {
    read(accountId) {
      const row = account.get(accountId);
      if (row === null) return undefined;
      const held = nodes.all(accountId).map(({ node, ...holding }) => [node, holding] as const);
      return { ...row, nodes: new Map(held) };
    },
    write(accountId, before, { revision, total, atMs, clockMs, nodes: holdings }) {
      putAccount.run(accountId, revision, total, atMs, clockMs);
      for (const [node, holding] of holdings) {
        if (before?.nodes.get(node) === holding) continue;
        const { fence, seq, granted, returned, charged, refunded, heardMs, needsUntilMs } = holding;
        putNode.run(accountId, node, fence, seq, granted, returned, charged, refunded, heardMs, needsUntilMs);
      }
    },
    noteReleased: (accountId, { node, credits }, atMs) =>
      void putReleased.run(accountId, node, credits, atMs),
  };
}
