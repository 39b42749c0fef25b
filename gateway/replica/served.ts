import { createKeySource } from '../../shared/keys/source.ts';
import type { PublishedRow } from '../../shared/publication.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';
import type { FoundKeys, Head, LoggedChanges, KeyAndAccount, Terms } from './published.ts';

/** The file in which the processes of a host keep the keys of another host that they have served, inside `storage.data_dir`. */
export const SERVED_FILE = 'keys.db';

/**
 * Keys that were served here and their accounts, in tables of the same names and columns as in the accounts database, so that
 * both are read alike. No revoked key is in them.
 *
 * `state`: `origin` and `holder` as Redis named them last (null: it was never reached, and `nobody` is 1 when it was and nobody
 * had published); all changes of `epoch` up to the version `position` are in the tables, but while `unverified` is not 0 changes
 * from before may be missing: rows must be compared with Redis. `revision` is that of the accounts database; `touched` grows
 * with every change.
 */
export const SERVED_MIGRATIONS: Migrations = {
  'served-1': `
    DROP VIEW IF EXISTS revision;
    DROP TABLE IF EXISTS accounts;
    DROP TABLE IF EXISTS keys;
    DROP TABLE IF EXISTS mirror;
    CREATE TABLE accounts (
      id INTEGER PRIMARY KEY,
      plan TEXT,
      credits_granted INTEGER,
      suspended INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE keys (
      id TEXT PRIMARY KEY,
      account_id INTEGER NOT NULL,
      hash BLOB NOT NULL UNIQUE,
      expires_at_ms INTEGER,
      revoked_at_ms INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE state (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      origin TEXT,
      holder TEXT,
      nobody INTEGER NOT NULL,
      epoch TEXT,
      position INTEGER NOT NULL,
      unverified INTEGER NOT NULL,
      revision INTEGER NOT NULL,
      touched INTEGER NOT NULL,
      config INTEGER NOT NULL,
      terms_id TEXT,
      terms TEXT
    ) STRICT;
    CREATE VIEW revision AS SELECT touched AS value, config FROM state;
    INSERT INTO state VALUES (1, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, NULL, NULL);
  `,
};

/** The members are those of the table. */
export type ServedState = Readonly<{
  origin: string | null;
  holder: string | null;
  nobody: 0 | 1;
  epoch: string | null;
  position: number;
  unverified: number;
  revision: number;
  touched: number;
  config: number;
  terms_id: string | null;
  terms: string | null;
}>;

/**
 * The file of served keys. Several processes write it, each at its own pace: what one read before the tables reached a later
 * version changes nothing. All of it throws when the file does not answer.
 */
export type Served = ReturnType<typeof createServed>;

/** Keys that are compared with Redis at once: about 75 KB, and a few milliseconds of SQLite. */
export const KEYS_AT_ONCE = 500;
/** Another value each time, so that a comparison that began before does not count. */
const UNVERIFIED = 'touched = touched + 1, unverified = touched + 1';
/** How long a write waits for another process of the host: all requests of this one wait with it. */
const BUSY_MS = 25;

export function createServed(store: Store) {
  store.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
  // The file is a copy: what a power cut takes from it is read again.
  store.run('PRAGMA synchronous = OFF');
  const stateOf = store.prepare<ServedState, []>('SELECT * FROM state');
  const after = store.prepare<{ id: string }, [string]>(
    `SELECT id FROM keys WHERE id > ? ORDER BY id LIMIT ${KEYS_AT_ONCE}`,
  );
  const source = createKeySource(store);
  const { put, update, drop } = createWrites(store);

  function state(): ServedState {
    const row = stateOf.get();
    if (row === null) throw new Error('the state row is missing');
    return row;
  }

  const noteHead = store.transaction(({ origin, holder, epoch }: Head) => {
    const before = state();
    if (before.origin !== origin) {
      store.run('DELETE FROM keys');
      store.run('DELETE FROM accounts');
      store.run('UPDATE state SET epoch = NULL, revision = 0, config = 0, terms_id = NULL, terms = NULL');
    }
    if (before.origin !== origin || (epoch !== undefined && before.epoch !== epoch))
      store.run(`UPDATE state SET epoch = ?, position = 0, ${UNVERIFIED}`, [epoch ?? null]);
    store.run('UPDATE state SET origin = ?, holder = ?, nobody = 0', [origin, holder]);
  });

  const follow = store.transaction(({ epoch, from, rows, upTo, isGap }: LoggedChanges) => {
    const { epoch: current, position } = state();
    if (current !== epoch || position !== from) return;
    for (const row of rows) update(row);
    store.run(`UPDATE state SET position = ?, ${isGap ? UNVERIFIED : 'touched = touched + 1'}`, [upTo]);
  });

  const take = store.transaction(({ epoch, version, isWhole, keys }: FoundKeys): boolean => {
    const now = state();
    if (now.epoch !== epoch || now.position > version) return false;
    for (const { id, found } of keys)
      if (found === undefined) {
        if (isWhole && drop(id)) store.run('UPDATE state SET touched = touched + 1');
      } else if (found !== 'unreadable') put(found);
    return true;
  });

  return {
    store,
    state,
    /** Reads a key; `undefined` when it was not served here. */
    read: source.read,
    /** Redis is there and nobody has published. */
    noteNobody: () => void store.run('UPDATE state SET nobody = 1 WHERE origin IS NULL AND nobody = 0'),
    /** Whose accounts Redis has, and in which epoch; keys of another origin than before are forgotten. */
    noteHead: (head: Head) => noteHead.immediate(head),
    noteTerms: ({ config, termsId, terms }: Terms) =>
      void store.run('UPDATE state SET config = max(config, ?), terms_id = ?, terms = ?', [
        config,
        termsId,
        terms,
      ]),
    /** Takes changes right behind the position. */
    follow: (changes: LoggedChanges) => follow.immediate(changes),
    /** Takes keys as they are in Redis; `false`: they were read too early or in another epoch. */
    take: (found: FoundKeys): boolean => take.immediate(found),
    /** Ids of some keys behind an id, in order. */
    keysAfter: (id: string): readonly string[] => after.all(id).map((row) => row.id),
    /** Every row was compared with Redis since `unverified` had this value. */
    noteVerified: (unverified: number) =>
      void store.run('UPDATE state SET unverified = 0, touched = touched + 1 WHERE unverified = ?', [
        unverified,
      ]),
    /** All changes up to a revision of the accounts database are here. */
    noteRevision: (revision: number) =>
      void store.run('UPDATE state SET revision = ?1 WHERE revision < ?1', [revision]),
  };
}

function createWrites(store: Store) {
  const account = store.prepare<null, [string | null, number | null, number, number]>(
    'UPDATE accounts SET plan = ?, credits_granted = ?, suspended = ? WHERE id = ?',
  );
  const key = store.prepare<null, [number, Buffer, number | null, string]>(
    'UPDATE keys SET account_id = ?, hash = ?, expires_at_ms = ? WHERE id = ?',
  );
  const putAccount = store.prepare<null, [number]>(
    'INSERT OR IGNORE INTO accounts (id, suspended) VALUES (?, 0)',
  );
  const putKey = store.prepare<null, [string, number, Buffer]>(
    'INSERT OR IGNORE INTO keys (id, account_id, hash) VALUES (?, ?, ?)',
  );
  const dropAccount = store.prepare<null, [string]>('DELETE FROM accounts WHERE id = ?');
  const dropKey = store.prepare<null, [string]>('DELETE FROM keys WHERE id = ?');

  /** Changes a row that is there. */
  function update(row: PublishedRow): void {
    switch (row.kind) {
      case 'account':
        account.run(row.plan, row.creditsGranted, row.suspended ? 1 : 0, row.id);
        return;
      case 'key':
        key.run(row.accountId, Buffer.from(row.hash, 'hex'), row.expiresAtMs, row.id);
        return;
      case 'gone':
        (row.subject === 'account' ? dropAccount : dropKey).run(row.id);
    }
  }

  return {
    update,
    put({ key, account }: KeyAndAccount): void {
      putAccount.run(account.id);
      putKey.run(key.id, account.id, Buffer.from(key.hash, 'hex'));
      update(account);
      update(key);
    },
    drop: (keyId: string) => dropKey.run(keyId).changes > 0,
  };
}
