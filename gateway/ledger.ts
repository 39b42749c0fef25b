import { USAGE_MIGRATIONS } from '../shared/ledger/schema.ts';
import type { Migrations } from '../shared/store/open.ts';
import { BUCKET_MIGRATIONS } from './limits/charge.ts';
import { LEASE_MIGRATIONS } from './cluster/store-sqlite.ts';
import { OUTBOX_MIGRATIONS } from './cluster/usage-outbox.ts';

export { LEDGER_FILE } from '../shared/ledger/schema.ts';

/** Everything a gateway keeps in the ledger. */
export const LEDGER_MIGRATIONS: Migrations = {
  ...USAGE_MIGRATIONS,
  ...LEASE_MIGRATIONS,
  ...BUCKET_MIGRATIONS,
  ...OUTBOX_MIGRATIONS,
};
