import type { Migrations } from '../../shared/store/open.ts';
import { AUDIT_MIGRATIONS } from '../audit/schema.ts';
import { OUTBOX_MIGRATIONS } from '../outbox/schema.ts';
import { USERS_MIGRATIONS } from '../users/schema.ts';

/**
 * What the watcher knows. `reading` has one row: the slot the last reading was taken at and when it began (Unix
 * milliseconds); `programs` is what it said. `block_times` are Unix seconds and never change once known.
 * `chain` has one row once a backend told the genesis hash (base58): all of the above is of that chain.
 * Webhooks and their deliveries follow, the log of who changed what, and who may use the console.
 */
export const DEPLOYS_MIGRATIONS: Migrations = {
  'programs-1': `
    CREATE TABLE reading (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      context_slot INTEGER NOT NULL,
      checked_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE programs (
      program_id TEXT PRIMARY KEY,
      status TEXT NOT NULL CHECK (status IN ('upgradeable', 'frozen', 'other_loader', 'missing')),
      upgrade_authority TEXT,
      deploy_slot INTEGER,
      CHECK ((status = 'upgradeable') = (upgrade_authority IS NOT NULL)),
      CHECK ((status IN ('upgradeable', 'frozen')) = (deploy_slot IS NOT NULL))
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE block_times (slot INTEGER PRIMARY KEY, unix_seconds INTEGER NOT NULL) STRICT;
  `,
  'programs-2': `
    CREATE TABLE chain (one INTEGER PRIMARY KEY CHECK (one = 1), genesis_hash TEXT NOT NULL) STRICT;
  `,
  ...OUTBOX_MIGRATIONS,
  ...USERS_MIGRATIONS,
  ...AUDIT_MIGRATIONS,
};
