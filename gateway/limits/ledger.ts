import type { Migrations, Store } from '../../shared/store/open.ts';

/** The file that holds what was spent, inside `storage.data_dir`; only the gateway writes it. */
export const LEDGER_FILE = 'ledger.db';

/** Per account and node, two counters that only grow; what was spent is their difference. */
export const LEDGER_MIGRATIONS: Migrations = {
  'ledger-1': `
    CREATE TABLE spent (
      account_id INTEGER NOT NULL,
      node TEXT NOT NULL,
      charged INTEGER NOT NULL,
      refunded INTEGER NOT NULL,
      PRIMARY KEY (account_id, node)
    ) STRICT, WITHOUT ROWID;
  `,
};

/** Credits that the account has spent on all nodes: charged minus refunded. */
export function spentOf(ledger: Store, accountId: number): number {
  const sum = ledger.query<{ spent: number | null }, [number]>(
    'SELECT sum(charged - refunded) AS spent FROM spent WHERE account_id = ?',
  );
  return sum.get(accountId)?.spent ?? 0;
}
