import { USAGE_MIGRATIONS } from '../../shared/ledger/schema.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';
import { LEASE_MIGRATIONS } from '../lease/store/schema.ts';
import { OUTBOX_MIGRATIONS } from '../usage/outbox.ts';
import { BUCKET_MIGRATIONS } from './bucket-store.ts';

export { LEDGER_FILE } from '../../shared/ledger/schema.ts';

/** Everything a gateway keeps in the ledger. */
export const LEDGER_MIGRATIONS: Migrations = {
  ...USAGE_MIGRATIONS,
  ...LEASE_MIGRATIONS,
  ...BUCKET_MIGRATIONS,
  ...OUTBOX_MIGRATIONS,
};

/** Credits that the account has spent on all nodes: charged minus refunded. */
export function spentOf(ledger: Store, accountId: number): number {
  const sum = ledger.query<{ spent: number | null }, [number]>(
    'SELECT sum(charged - refunded) AS spent FROM spent WHERE account_id = ?',
  );
  return sum.get(accountId)?.spent ?? 0;
}
