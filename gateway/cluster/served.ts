import { keyIdOf } from '../../shared/keys/api-key.ts';
import type { KnownKey } from '../../shared/keys/source.ts';
import { accountFrom, keyFrom } from '../../shared/publication.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';
import type { FoundKeys, News } from './published.ts';

/** The file in which the processes of a host keep the keys of another host that they have served, inside `storage.data_dir`. */
export const SERVED_FILE = 'keys.db';

/**
 * `rows`: keys that were served here and their accounts, as they are published; no revoked key is among them.
 *
 * `state`: `origin` and `holder` as Redis named them last (null: it was never reached, and `unpublished` is 1 when it was and
 * nothing was published); all changes of `epoch` up to the version `position` are in the rows, but while `unverified` is not 0 changes
 * from before may be missing: rows must be compared with Redis. `revision` is that of the accounts database; `touched` grows
 * with every change. `generation` and `seen` are the latest generation and revision that Redis ever had of this origin: where it
 * has less it was put back to an older state, and nothing of that is taken.
 */
export const SERVED_MIGRATIONS: Migrations = {
  'served-1': `
    CREATE TABLE rows (name TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE state (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      origin TEXT,
      holder TEXT,
      unpublished INTEGER NOT NULL,
      epoch TEXT NOT NULL,
      position INTEGER NOT NULL,
      unverified INTEGER NOT NULL,
      revision INTEGER NOT NULL,
      touched INTEGER NOT NULL,
      config INTEGER NOT NULL,
      terms_id TEXT NOT NULL,
      terms TEXT NOT NULL
    ) STRICT;
    INSERT INTO state VALUES (1, NULL, NULL, 0, '', 0, 0, 0, 0, 0, '', '');
  `,
  'served-2-seen': `
    ALTER TABLE state ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE state ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
    UPDATE state SET seen = revision;
  `,
};

/** The members are those of the table. */
export type ServedState = Readonly<{
  origin: string | null;
  holder: string | null;
  unpublished: 0 | 1;
  epoch: string;
  position: number;
  unverified: number;
  revision: number;
  touched: number;
  config: number;
  terms_id: string;
  terms: string;
  generation: number;
  seen: number;
}>;

/** Whether Redis has an older state than it had. */
function isOlder({ generation, seq }: Pick<News, 'generation' | 'seq'>, had: News['noted']): boolean {
  return generation < had.generation || seq < had.seen;
}

/** The file of served keys, written by several processes at their own pace. All of it throws when it does not answer. */
export type Served = ReturnType<typeof createServed>;

/** Keys that are compared with Redis at once: about 75 KB, and a few milliseconds of SQLite. */
const KEYS_AT_ONCE = 500;
/** How long a write waits for another process of the host: all requests of this one wait with it. */
const BUSY_MS = 25;
/** Another value each time, so that a comparison that began before does not count. */
const UNVERIFIED = 'touched = touched + 1, unverified = touched + 1';

export function createServed(store: Store) {
  store.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
  // The file is a copy: what a power cut takes from it is read again.
  store.run('PRAGMA synchronous = OFF');
  const stateOf = store.prepare<ServedState, []>('SELECT * FROM state');
  const textOf = store.prepare<{ text: string }, [string]>('SELECT text FROM rows WHERE name = ?');
  const after = store.prepare<{ name: string }, [string]>(
    `SELECT name FROM rows WHERE name > ? ORDER BY name LIMIT ${KEYS_AT_ONCE}`,
  );
  const put = store.prepare<null, [string, string]>('INSERT OR REPLACE INTO rows VALUES (?, ?)');
  const update = store.prepare<null, [string, string]>('UPDATE rows SET text = ? WHERE name = ?');
  const drop = store.prepare<null, [string]>('DELETE FROM rows WHERE name = ?');

  function state(): ServedState {
    const row = stateOf.get();
    if (row === null) throw new Error('the state row is missing');
    return row;
  }

  /** Reads a key; `undefined` when it was not served here, or not as this version writes it. */
  function read(hash: Buffer): KnownKey | undefined {
    const keyId = keyIdOf(hash);
    const key = keyFrom(textOf.get(`k${keyId}`)?.text ?? '');
    if (key === undefined || key.hash !== hash.toString('hex')) return undefined;
    const account = accountFrom(textOf.get(`a${key.accountId}`)?.text ?? '');
    if (account === undefined) return undefined;
    const { plan, creditsGranted, suspended } = account;
    const terms = { plan: plan ?? undefined, creditsGranted: creditsGranted ?? undefined };
    const caller = { keyId, accountId: key.accountId, ...terms };
    return { identity: { kind: 'known', caller }, suspended, expiresAtMs: key.expiresAtMs ?? undefined };
  }

  const follow = store.transaction(({ origin, holder, epoch, config, termsId, terms, ...news }: News) => {
    if (state().origin !== origin) {
      store.run('DELETE FROM rows');
      store.run(
        `UPDATE state SET origin = ?, epoch = '', revision = 0, config = 0, terms_id = '', terms = '', generation = 0, seen = 0`,
        [origin],
      );
    } else if (isOlder(news, state())) return;
    store.run('UPDATE state SET generation = ?, seen = ?', [news.generation, news.seq]);
    if (state().epoch !== epoch)
      store.run(`UPDATE state SET epoch = ?, position = 0, ${UNVERIFIED}`, [epoch]);
    store.run('UPDATE state SET holder = ?, unpublished = 0, config = max(config, ?)', [holder, config]);
    if (terms !== '') store.run('UPDATE state SET terms_id = ?, terms = ?', [termsId, terms]);
    if (state().position !== news.from) return;
    for (const [name, text] of news.rows) {
      if (text === '') drop.run(name);
      else update.run(text, name);
    }
    if (news.upTo > news.from)
      store.run(`UPDATE state SET position = ?, ${news.isGap ? UNVERIFIED : 'touched = touched + 1'}`, [
        news.upTo,
      ]);
    if (news.upTo >= news.version)
      store.run('UPDATE state SET revision = max(revision, ?) WHERE unverified = 0', [news.seq]);
  });

  const take = store.transaction(({ epoch, version, generation, seq, isWhole, keys }: FoundKeys): boolean => {
    const now = state();
    if (now.epoch !== epoch || now.position > version || isOlder({ generation, seq }, now)) return false;
    for (const { key, account } of keys) {
      if (key[1] !== '' && account[1] !== '') for (const [name, text] of [key, account]) put.run(name, text);
      const isGone = key[1] === '' && isWhole && drop.run(key[0]).changes > 0;
      if (isGone) store.run('UPDATE state SET touched = touched + 1');
    }
    return true;
  });

  return {
    store,
    state,
    read,
    /** Redis is there, and nothing was published. */
    noteUnpublished(): void {
      const { origin, unpublished } = state();
      if (origin === null && unpublished === 0)
        store.run('UPDATE state SET unpublished = 1 WHERE origin IS NULL');
    },
    /**
     * Takes what is new, if the rows are where it was read from; those of another origin than before are forgotten. `older`: nothing
     * was taken, because Redis had more before.
     */
    follow(news: News): 'taken' | 'older' {
      const now = state();
      const { origin, holder, epoch, unverified, config, revision, position, seen, generation } = now;
      const isOwn = origin === news.origin;
      if (isOlder(news, news.noted) || (isOwn && isOlder(news, now))) return 'older';
      const isSame =
        isOwn && holder === news.holder && epoch === news.epoch && generation === news.generation;
      const isLater = news.upTo > position || news.seq > seen || (unverified === 0 && news.seq > revision);
      if (!isSame || isLater || news.terms !== '' || news.config > config) follow.immediate(news);
      return 'taken';
    },
    /** Takes keys as they are in Redis; `false`: they were read too early or in another epoch. */
    take: (found: FoundKeys): boolean => take.immediate(found),
    /** Ids of some keys behind an id, in order. */
    keysAfter: (id: string): readonly string[] => after.all(`k${id}`).map(({ name }) => name.slice(1)),
    /** Every row was compared with Redis since `unverified` had this value. */
    noteVerified: (unverified: number) =>
      void store.run('UPDATE state SET unverified = 0, touched = touched + 1 WHERE unverified = ?', [
        unverified,
      ]),
  };
}
