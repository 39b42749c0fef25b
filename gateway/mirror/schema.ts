import type { Migrations } from '../../shared/store/open.ts';

/** The file in which the processes of a host keep what another host published, inside `storage.data_dir`. */
export const MIRROR_FILE = 'keys.db';

/**
 * A copy of published accounts and keys, in tables of the same names and columns as in the accounts database, so that
 * both are read alike. Revoked keys are not in it. `generation` is the load that a row was last part of; `touched` grows
 * with every change.
 *
 * `mirror`: `origin` and `holder` as Redis named them last (null: it was never asked, and `nobody` is 1 when it was and
 * nobody had published); all changes of `epoch` up to `position` are in the tables; `complete` is 1 from the first time
 * that an epoch of this origin was here whole.
 */
export const MIRROR_MIGRATIONS: Migrations = {
  'mirror-1': `
    CREATE TABLE accounts (
      id INTEGER PRIMARY KEY,
      plan TEXT,
      credits_granted INTEGER,
      suspended INTEGER NOT NULL,
      generation INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE keys (
      id TEXT PRIMARY KEY,
      account_id INTEGER NOT NULL,
      hash BLOB NOT NULL UNIQUE,
      last_used_at_ms INTEGER,
      expires_at_ms INTEGER,
      revoked_at_ms INTEGER,
      generation INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX accounts_by_generation ON accounts (generation);
    CREATE INDEX keys_by_generation ON keys (generation);
    CREATE TABLE mirror (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      origin TEXT,
      holder TEXT,
      nobody INTEGER NOT NULL,
      epoch TEXT,
      position INTEGER NOT NULL,
      loading INTEGER NOT NULL,
      complete INTEGER NOT NULL,
      generation INTEGER NOT NULL,
      revision INTEGER NOT NULL,
      touched INTEGER NOT NULL,
      config INTEGER NOT NULL,
      terms_id TEXT,
      terms TEXT
    ) STRICT;
    CREATE VIEW revision AS SELECT touched AS value, config FROM mirror;
    INSERT INTO mirror VALUES (1, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL);
  `,
};
