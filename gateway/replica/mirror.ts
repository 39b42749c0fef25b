import type { Clock } from '../../shared/clock.ts';
import { HEAD, rowsOf, USES } from '../../shared/publication/names.ts';
import { type PublishedRow, rowFrom } from '../../shared/publication/row.ts';
import {
  openRedisLink,
  type RedisClient,
  type RedisLink,
  type RedisScript,
} from '../../shared/redis/link.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';

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

/** Where a mirror stands; the members are those of the table. */
export type MirrorState = Readonly<{
  origin: string | null;
  holder: string | null;
  nobody: 0 | 1;
  epoch: string | null;
  position: number;
  loading: 0 | 1;
  complete: 0 | 1;
  generation: number;
  revision: number;
  touched: number;
  config: number;
  terms_id: string | null;
  terms: string | null;
}>;

/** Rows as they were read from an epoch, each with its revision; all changes up to `upTo` are known with them. */
type ReadRows = Readonly<{
  epoch: string;
  /** The position that they were read from. */
  from: number;
  rows: readonly Readonly<{ seq: number; text: string }>[];
  upTo: number;
  /** There is no more in the epoch for now. */
  isLast: boolean;
}>;

/**
 * The mirror's file. Several processes write it: what one is late with changes nothing, for it is taken only where the
 * mirror stands. All of it throws when the file does not answer.
 */
export type Mirror = Readonly<{
  store: Store;
  state(): MirrorState;
  /** Redis is there and nobody has published. */
  noteNobody(): void;
  /** Whose accounts Redis has; those of another origin than before are begun anew. */
  noteHead(origin: string, holder: string): void;
  noteTerms(config: number, termsId: string, terms: string): void;
  /** Begins an epoch, or goes back to `position` in one: Redis knows no more. */
  begin(epoch: string, position: number): void;
  take(read: ReadRows): void;
  /** Drops some of the rows that the last load did not have; gives whether there may be more. */
  sweep(): boolean;
}>;

/** Rows dropped in one transaction. */
const SWEPT_MAX = 500;
/** How long a write waits for another process of the host: all requests of this one wait with it. */
const BUSY_MS = 25;

export function createMirror(store: Store): Mirror {
  store.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
  // The file is a copy: what a power cut takes from it is read again.
  store.run('PRAGMA synchronous = OFF');
  const stateOf = store.prepare<MirrorState, []>('SELECT * FROM mirror');
  const change = createChange(store);

  function state(): MirrorState {
    const row = stateOf.get();
    if (row === null) throw new Error('the mirror row is missing');
    return row;
  }

  const noteHead = store.transaction((origin: string, holder: string) => {
    if (state().origin !== origin) {
      store.run('DELETE FROM keys');
      store.run('DELETE FROM accounts');
      store.run(`UPDATE mirror SET epoch = NULL, position = 0, loading = 0, complete = 0, revision = 0, config = 0,
        terms_id = NULL, terms = NULL, touched = touched + 1`);
    }
    store.run('UPDATE mirror SET origin = ?, holder = ?, nobody = 0', [origin, holder]);
  });

  const begin = store.transaction((epoch: string, position: number) => {
    if (state().epoch === epoch)
      return void store.run('UPDATE mirror SET position = min(position, ?)', [position]);
    store.run('UPDATE mirror SET epoch = ?, position = 0, loading = 1, generation = generation + 1', [epoch]);
  });

  const take = store.transaction(({ epoch, from, rows, upTo, isLast }: ReadRows) => {
    const { epoch: current, position, generation } = state();
    if (current !== epoch || position !== from) return;
    for (const { text } of rows) {
      const row = rowFrom(text);
      if (row !== undefined) change(row, generation);
    }
    store.run('UPDATE mirror SET position = ?, touched = touched + ?', [upTo, rows.length > 0 ? 1 : 0]);
    if (isLast) store.run('UPDATE mirror SET loading = 0, complete = 1, revision = max(revision, ?)', [upTo]);
  });

  const sweep = store.transaction((): boolean => {
    const { generation, loading } = state();
    if (loading === 1) return false;
    const dropped = ['keys', 'accounts'].map(
      (table) =>
        store.run(
          `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE generation < ? LIMIT ${SWEPT_MAX})`,
          [generation],
        ).changes,
    );
    if (dropped.some((rows) => rows > 0)) store.run('UPDATE mirror SET touched = touched + 1');
    return dropped.some((rows) => rows === SWEPT_MAX);
  });

  return {
    store,
    state,
    noteNobody: () => void store.run('UPDATE mirror SET nobody = 1 WHERE origin IS NULL AND nobody = 0'),
    noteHead: (origin, holder) => noteHead.immediate(origin, holder),
    noteTerms: (config, termsId, terms) =>
      void store.run('UPDATE mirror SET config = max(config, ?), terms_id = ?, terms = ?', [
        config,
        termsId,
        terms,
      ]),
    begin: (epoch, position) => begin.immediate(epoch, position),
    take: (read) => take.immediate(read),
    sweep: () => sweep.immediate(),
  };
}

function createChange(store: Store): (row: PublishedRow, generation: number) => void {
  const account = store.prepare<null, [number, string | null, number | null, number, number]>(`
    INSERT INTO accounts (id, plan, credits_granted, suspended, generation) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET plan = excluded.plan, credits_granted = excluded.credits_granted,
      suspended = excluded.suspended, generation = excluded.generation`);
  const key = store.prepare<null, [string, number, Buffer, number | null, number]>(`
    INSERT INTO keys (id, account_id, hash, expires_at_ms, generation) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET account_id = excluded.account_id, hash = excluded.hash,
      expires_at_ms = excluded.expires_at_ms, generation = excluded.generation`);
  const dropAccount = store.prepare<null, [string | number]>('DELETE FROM accounts WHERE id = ?');
  const dropKey = store.prepare<null, [string]>('DELETE FROM keys WHERE id = ?');

  return function change(row, generation) {
    switch (row.kind) {
      case 'account':
        account.run(row.id, row.plan, row.creditsGranted, row.suspended ? 1 : 0, generation);
        return;
      case 'key':
        if (row.revokedAtMs !== null) dropKey.run(row.id);
        else key.run(row.id, row.accountId, Buffer.from(row.hash, 'hex'), row.expiresAtMs, generation);
        return;
      case 'gone':
        if (row.subject === 'account') dropAccount.run(row.id);
        else dropKey.run(row.id);
    }
  };
}

/** What Redis says is published. */
export type Head = Readonly<{
  origin: string;
  holder: string;
  /** `undefined` until a first publication is whole. */
  epoch: string | undefined;
  seq: number;
  termsId: string | undefined;
  /** Keys that are revoked ahead of their rows, as `revokedFrom` reads them. */
  revoked: string | undefined;
}>;

/** The published rows in Redis, for a mirror. Everything rejects while Redis does not answer. */
export type RedisRows = Readonly<{
  /** `undefined`: nobody has published. */
  head(): Promise<Head | undefined>;
  terms(): Promise<Readonly<{ config: number; termsId: string; terms: string }> | undefined>;
  /** Rows of an epoch behind a revision; `undefined` when the epoch is no longer the one that is read. */
  after(epoch: string, from: number): Promise<ReadRows | undefined>;
  noteUses(uses: readonly (readonly [keyId: string, atMs: number])[]): Promise<void>;
  close(): Promise<void>;
}>;

/** Rows read at once: about 75 KB, and a few milliseconds of SQLite. */
const ROWS_AT_ONCE = 500;
const DEADLINE_MS = 1_000;
/** Uses that no deploys takes for so long are forgotten. */
const USES_LIFE_MS = 86_400_000;

/** Keys: head, rows. Words: epoch, revision, how many. Replies the epoch's seq and its entries, or nothing. */
const READ: RedisScript = {
  keys: 2,
  lua: `
local head = redis.call('HMGET', KEYS[1], 'epoch', 'seq')
if head[1] ~= ARGV[1] then return false end
return {head[2], redis.call('XRANGE', KEYS[2], '(' .. ARGV[2] .. '-0', '+', 'COUNT', ARGV[3])}`,
};

/** Keys: uses. Words: life in ms, then instants, each with its key id. */
const USE: RedisScript = {
  keys: 1,
  lua: `
for i = 2, #ARGV, 2 do redis.call('ZADD', KEYS[1], 'GT', ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 'put'`,
};

type Script = (...words: readonly (string | number)[]) => Promise<unknown>;
type Scripted = RedisClient & Record<'sluiceRead' | 'sluiceUse', Script>;

type RedisRowsOptions = Readonly<{
  url: string;
  clock: Clock;
  /** A number from 0 up to 1. */
  random(): number;
  onWarning(sentence: string): void;
}>;

/** Opens the way to Redis, whether it is there or not; `undefined` when `url` is no address of one. */
export function openRedisRows({ url, clock, random, onWarning }: RedisRowsOptions): RedisRows | undefined {
  const scripts = { sluiceRead: READ, sluiceUse: USE };
  const link = openRedisLink({
    url,
    deadlineMs: DEADLINE_MS,
    scripts,
    clock,
    random,
    onWarning,
    // What Redis has lost is published again, and then read like any other change.
    onStranger: () => undefined,
  });
  return link && over(link);
}

function over(link: RedisLink): RedisRows {
  function client(): Scripted {
    const now = link.client();
    if (now === undefined) throw new Error('Redis does not answer');
    return now as Scripted; // the link was opened with these scripts
  }

  /** Those of the head's fields that are there. */
  async function fields(...names: string[]): Promise<Readonly<Record<string, string | undefined>>> {
    const values = await client().hmget(HEAD, ...names);
    return Object.fromEntries(names.map((name, at) => [name, values[at] ?? undefined]));
  }

  return {
    async head() {
      const { origin, holder, epoch, seq, termsId, revoked } = await fields(
        'origin',
        'holder',
        'epoch',
        'seq',
        'termsId',
        'revoked',
      );
      if (origin === undefined || holder === undefined) return undefined;
      return { origin, holder, epoch, seq: Number(seq ?? 0), termsId, revoked };
    },
    async terms() {
      const { config, termsId, terms } = await fields('config', 'termsId', 'terms');
      if (config === undefined || termsId === undefined || terms === undefined) return undefined;
      return { config: Number(config), termsId, terms };
    },
    async after(epoch, from) {
      const reply = await client().sluiceRead(HEAD, rowsOf(epoch), epoch, from, ROWS_AT_ONCE);
      if (!Array.isArray(reply)) return undefined;
      const [seq, entries]: unknown[] = reply;
      const rows = rowsIn(entries);
      const isLast = rows.length < ROWS_AT_ONCE;
      const upTo = Math.max(from, isLast ? Number(seq) : (rows.at(-1)?.seq ?? from));
      return { epoch, from, rows, upTo, isLast };
    },
    async noteUses(uses) {
      await client().sluiceUse(USES, USES_LIFE_MS, ...uses.flatMap(([keyId, atMs]) => [atMs, keyId]));
    },
    close: () => link.close(),
  };
}

/** Entries of a stream as Lua gives them: `[id, [field, value]]`. */
function rowsIn(entries: unknown): readonly Readonly<{ seq: number; text: string }>[] {
  if (!Array.isArray(entries)) throw new Error('Redis gave no rows');
  return entries.map(([id, fields]) => ({
    seq: Number(String(id).split('-', 1)[0]),
    text: String(Array.isArray(fields) ? fields[1] : ''),
  }));
}
