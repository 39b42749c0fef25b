import type { Migrations } from '../../shared/store/open.ts';

/** How long an entry stays at least: 400 days, so that a year can be compared with the one before. */
export const AUDIT_KEPT_MS = 400 * 86_400_000;

/**
 * Who changed what. `at_ms` is Unix milliseconds; `action` is a noun and a verb, `webhook.rotate`; `subject` is the id of
 * what was changed; `account_id` is null for what belongs to no account. The table itself refuses changes, and the
 * deletion of what is not `AUDIT_KEPT_MS` older than its newest entry.
 */
export const AUDIT_MIGRATIONS: Migrations = {
  'audit-1': `
    CREATE TABLE audit (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      at_ms INTEGER NOT NULL,
      actor_kind TEXT NOT NULL CHECK (actor_kind IN ('key', 'user', 'operator', 'command-line')),
      actor_id TEXT,
      action TEXT NOT NULL,
      account_id INTEGER,
      subject TEXT NOT NULL,
      detail_json TEXT NOT NULL CHECK (json_type(detail_json) = 'object'),
      CHECK ((actor_id IS NULL) = (actor_kind = 'command-line'))
    ) STRICT;
    CREATE INDEX audit_of_account ON audit (account_id, id);
    CREATE INDEX audit_at ON audit (at_ms);
    CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
      BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
    CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
      WHEN old.at_ms > (SELECT max(at_ms) FROM audit) - ${AUDIT_KEPT_MS}
      BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
  `,
  'audit-2': `
    CREATE INDEX audit_of_actor ON audit (actor_id, id);
    CREATE INDEX audit_of_action ON audit (action, id);
  `,
};
