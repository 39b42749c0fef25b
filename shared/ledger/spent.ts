import type { Store } from '../store/open.ts';

/** Credits that the account has spent on all nodes: charged minus refunded. Throws when the ledger cannot be read. */
export function spentOf(ledger: Store, accountId: number): number {
  const sum = ledger.query<{ spent: number | null }, [number]>(
    'SELECT sum(charged - refunded) AS spent FROM spent WHERE account_id = ?',
  );
  return sum.get(accountId)?.spent ?? 0;
}
