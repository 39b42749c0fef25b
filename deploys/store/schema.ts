import type { Migrations } from '../../shared/store/open.ts';
import { AUDIT_MIGRATIONS } from '../audit/schema.ts';
import { OUTBOX_MIGRATIONS } from '../outbox/schema.ts';
import { USERS_MIGRATIONS } from '../users/schema.ts';

/**
 * What the watcher knows. `reading` has one row: the slot the last reading was taken at and when it began (Unix
 * milliseconds); `programs` is what it said. `block_times` are Unix seconds and never change once known.
 * `chain` has one row once a backend told the genesis hash (base58): all of the above is of that chain.
 * `program_deploys` are the deploys that were seen, of programs that are watched or once were, and whether or not they
 * made an event.
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
  'program-deploys-1': `
    CREATE TABLE program_deploys (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      program_id TEXT NOT NULL,
      deploy_slot INTEGER NOT NULL,
      previous_slot INTEGER,
      detected_at_ms INTEGER NOT NULL,
      authority TEXT
    ) STRICT;
    CREATE INDEX program_deploys_of_program ON program_deploys (program_id, id);
  `,
  ...OUTBOX_MIGRATIONS,
  'webhooks-failing-1': `
    CREATE INDEX webhooks_failing ON webhooks (failing_since_ms, id)
      WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL;
  `,
  ...AUDIT_MIGRATIONS,
  ...USERS_MIGRATIONS,
};
