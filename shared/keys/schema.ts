import type { Migrations, Store } from '../store/open.ts';

/** The file that holds accounts and keys, inside `storage.data_dir`. */
export const ACCOUNTS_FILE = 'sluice.db';

/** A trigger that notes a change of an account or a key under a revision of its own. */
function noting(name: string, event: string, subject: 'account' | 'key', row: 'new' | 'old'): string {
  return `CREATE TRIGGER ${name} AFTER ${event} BEGIN
      UPDATE revision SET value = value + 1;
      INSERT INTO changes (seq, subject, id) VALUES ((SELECT value FROM revision), '${subject}', ${row}.id)
        ON CONFLICT (subject, id) DO UPDATE SET seq = excluded.seq;
    END;`;
}

/**
 * Accounts and keys. `revision` grows with every change that a running app must notice; a key's last use is
 * not one. Instants are Unix milliseconds. `credits_granted` is every credit an
 * account was ever given, and null while that is simply its plan's allowance; what is left is it minus what the
 * gateway's ledger says was spent. `credits_added` has everything that was added to what an account had, under a name
 * that is added once. The indexes serve lists; those of keys hold what is searched, so that a search reads nothing
 * else; `keys_working` serves the bound of how many an account has.
 *
 * For gateways on other hosts: `origin` distinguishes this database and its copies from every other. `changes` has one row per
 * account and key with the revision of its latest change, also of one that is deleted. `publication` says what this database
 * published last: all changes up to `published` are in Redis in `epoch`, by as many writes as `puts`. `generation` counts the
 * starts that published, `turns` the turns of deliveries, and those in which the audit log had grown (beyond the entry `audited`); they
 * and `announced`, the highest revision that Redis may have, are
 * written here before Redis has them, so one that is higher there was written by a later state of this file. `behind` is the
 * published generation when that was found. `take_over` is the generation that this file takes over as, because an operator said
 * that it counts all the same, unless that one is published already, as by a copy with the same word; 0: nobody said so.
 * `publishers` are the starts of deploys on this very file that published it: the holder named in Redis is one of them, or
 * the file is a copy of an earlier state.
 */
export const ACCOUNTS_MIGRATIONS: Migrations = {
  'accounts-1': `
    CREATE TABLE accounts (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      plan TEXT,
      credits_granted INTEGER,
      suspended INTEGER NOT NULL DEFAULT 0,
      created_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE keys (
      id TEXT PRIMARY KEY,
      account_id INTEGER NOT NULL REFERENCES accounts (id),
      name TEXT NOT NULL,
      hash BLOB NOT NULL UNIQUE,
      prefix TEXT NOT NULL,
      last4 TEXT NOT NULL,
      created_at_ms INTEGER NOT NULL,
      last_used_at_ms INTEGER,
      expires_at_ms INTEGER,
      revoked_at_ms INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX keys_of_account ON keys (account_id, created_at_ms);
    CREATE TABLE revision (one INTEGER PRIMARY KEY CHECK (one = 1), value INTEGER NOT NULL, config INTEGER NOT NULL) STRICT;
    INSERT INTO revision VALUES (1, 1, 1);
    CREATE TRIGGER account_made AFTER INSERT ON accounts BEGIN UPDATE revision SET value = value + 1; END;
    CREATE TRIGGER account_changed AFTER UPDATE ON accounts BEGIN UPDATE revision SET value = value + 1; END;
    CREATE TRIGGER key_made AFTER INSERT ON keys BEGIN UPDATE revision SET value = value + 1; END;
    CREATE TRIGGER key_changed AFTER UPDATE OF account_id, hash, expires_at_ms, revoked_at_ms ON keys
      BEGIN UPDATE revision SET value = value + 1; END;
  `,
  'credits-added-1': `
    CREATE TABLE credits_added (
      account_id INTEGER NOT NULL REFERENCES accounts (id),
      once TEXT NOT NULL,
      credits INTEGER NOT NULL,
      reason TEXT NOT NULL,
      at_ms INTEGER NOT NULL,
      PRIMARY KEY (account_id, once)
    ) STRICT, WITHOUT ROWID;
  `,
  'key-lists-1': `
    CREATE INDEX keys_by_age ON keys (created_at_ms, id, name, last4);
    CREATE INDEX keys_of_account_by_age ON keys (account_id, created_at_ms, id, name, last4);
    DROP INDEX keys_of_account;
  `,
  'keys-once-1': `
    ALTER TABLE keys ADD COLUMN once TEXT;
    CREATE UNIQUE INDEX keys_once ON keys (account_id, once) WHERE once IS NOT NULL;
  `,
  'account-lists-1': `
    CREATE INDEX accounts_on_plan ON accounts (plan, id);
    CREATE INDEX accounts_suspended ON accounts (id) WHERE suspended = 1;
  `,
  'accounts-2-publication': `
    CREATE TABLE origin (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL) STRICT;
    INSERT INTO origin VALUES (1, lower(hex(randomblob(16))));
    CREATE TABLE changes (
      seq INTEGER PRIMARY KEY,
      subject TEXT NOT NULL,
      id TEXT NOT NULL,
      published INTEGER NOT NULL DEFAULT 0,
      UNIQUE (subject, id)
    ) STRICT;
    INSERT INTO changes (seq, subject, id) SELECT row_number() OVER (), subject, id FROM (
      SELECT 'account' AS subject, CAST(id AS TEXT) AS id FROM accounts UNION ALL SELECT 'key', id FROM keys);
    UPDATE revision SET value = max(value, (SELECT count(*) FROM changes));
    CREATE TABLE publication (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      epoch TEXT,
      building TEXT,
      published INTEGER NOT NULL,
      intent INTEGER NOT NULL
    ) STRICT;
    INSERT INTO publication VALUES (1, NULL, NULL, 0, 0);
    CREATE TABLE publishers (token TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    DROP TRIGGER account_made;
    DROP TRIGGER account_changed;
    DROP TRIGGER key_made;
    DROP TRIGGER key_changed;
    ${noting('account_made', 'INSERT ON accounts', 'account', 'new')}
    ${noting('account_changed', 'UPDATE ON accounts', 'account', 'new')}
    ${noting('account_gone', 'DELETE ON accounts', 'account', 'old')}
    ${noting('key_made', 'INSERT ON keys', 'key', 'new')}
    ${noting('key_changed', 'UPDATE OF account_id, hash, expires_at_ms, revoked_at_ms ON keys', 'key', 'new')}
    ${noting('key_gone', 'DELETE ON keys', 'key', 'old')}
  `,
  'accounts-3-publication': `
    ALTER TABLE changes DROP COLUMN published;
    DROP TABLE publication;
    CREATE TABLE publication (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      epoch TEXT,
      puts INTEGER NOT NULL,
      published INTEGER NOT NULL
    ) STRICT;
    INSERT INTO publication VALUES (1, NULL, 0, 0);
  `,
  'keys-working-1': `
    CREATE INDEX keys_working ON keys (account_id, expires_at_ms, revoked_at_ms) WHERE revoked_at_ms IS NULL;
  `,
  'accounts-4-generation': `
    ALTER TABLE publication ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE publication ADD COLUMN announced INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE publication ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE publication ADD COLUMN behind INTEGER;
    ALTER TABLE publication ADD COLUMN take_over INTEGER NOT NULL DEFAULT 0;
    UPDATE publication SET announced = (SELECT value FROM revision) WHERE epoch IS NOT NULL;
  `,
  'accounts-5-audited': `
    ALTER TABLE publication ADD COLUMN audited INTEGER NOT NULL DEFAULT 0;
  `,
};

/** Asks every running app on the accounts database to read its config again; gives the request's number, which only grows. */
export function requestReload(accounts: Store): number {
  const bump = accounts.query<{ config: number }, []>(
    'UPDATE revision SET config = config + 1 RETURNING config',
  );
  const row = bump.get();
  if (row === null) throw new Error('the revision row is missing');
  return row.config;
}

export function plansInUse(accounts: Store): ReadonlyMap<string, number> {
  const rows = accounts.query<{ plan: string; accounts: number }, []>(
    'SELECT plan, count(*) AS accounts FROM accounts WHERE plan IS NOT NULL GROUP BY plan ORDER BY plan',
  );
  return new Map(rows.all().map(({ plan, accounts: count }) => [plan, count]));
}

/** The account of the embedded chain's demonstration, and the name of its keys. */
export const DEMO = 'demo';

/** Revokes every active demo key, since one stands in a terminal and a file, and gives how many: none may reach real backends. */
export function retireDemoKeys(accounts: Store, nowMs: number): number {
  const revoked = accounts.prepare<unknown, { nowMs: number; demo: string }>(`
    UPDATE keys SET revoked_at_ms = $nowMs
    WHERE name = $demo AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > $nowMs)
      AND account_id = (SELECT id FROM accounts WHERE name = $demo)`);
  return revoked.run({ nowMs, demo: DEMO }).changes;
}
