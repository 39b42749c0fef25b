import { Database } from 'bun:sqlite';
import { basename } from 'node:path';
import type { Brand } from '../brand.ts';
import { giveId, idInHeader, idOf, isOverwritten, noteFile, noteId, inodeOf, UNSEEN } from './identity.ts';
import { codeOf, fileReason, keepPrivate } from './private.ts';

/** An open SQLite file in WAL mode with every migration applied. */
export type Store = Brand<Database, 'Store'>;

/** Changes to a schema, in order. A name that was applied once is never applied again, so names are never reused. */
export type Migrations = Readonly<Record<string, string>>;

export type Opened =
  | { readonly kind: 'open'; readonly store: Store }
  /** `sentence` tells the operator what is wrong with which file. */
  | { readonly kind: 'unusable'; readonly sentence: string };

/**
 * The format of all databases, above that of every earlier release whose programs must not run on them any more. To be
 * raised with every migration: an app that knows only a part of a file's tables sees by it alone that they are newer.
 */
const FORMAT = 2;

/** How long one process waits for another's write before it gives up, in milliseconds. */
const BUSY_MS = 5_000;

/** The pause between two tries to switch a new file to WAL, in milliseconds. */
const WAL_PAUSE_MS = 10;

/**
 * Opens or makes the file at `path`, for its owner alone. Several processes may hold the same file. `migrations` are the
 * whole of the file, or the part of one app, beside which others have theirs. Never throws for a bad file.
 */
export function openStore(path: string, migrations: Migrations, extent: 'whole' | 'part' = 'part'): Opened {
  let database: Database | undefined;
  try {
    if (path !== ':memory:') {
      keepPrivate(path);
      if (isOverwritten(path)) return { kind: 'unusable', sentence: overwrittenSentence(path) };
      noteFile(path); // before what may take seconds: others look at it meanwhile
    }
    database = new Database(path, { create: true, strict: true });
    database.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    refuseNewer(database);
    switchToWal(database);
    database.run('PRAGMA synchronous = NORMAL');
    database.run('PRAGMA foreign_keys = ON');
    check(database);
    migrate(database, migrations, extent);
    if (path !== ':memory:') noteId(database, path);
    // The brand is this function's to give: the file was opened, checked and migrated above.
    return { kind: 'open', store: database as Store };
  } catch (error) {
    database?.close();
    return { kind: 'unusable', sentence: sentenceOf(path, error) };
  }
}

/** Gives, as a clause, what became of a store's file: SQLite goes on without end with one that was deleted or replaced. */
export function watchFile(opened: Store) {
  const { filename: store } = opened;
  const inode = inodeOf(store); // there is none of a database in memory
  const id = idOf(opened);
  const name = basename(store);
  let isWritten = false; // the id of a new store may be in its log alone for a while
  return () => {
    const now = inodeOf(store);
    if (now === UNSEEN) return undefined;
    if (now !== inode) {
      const how = now === undefined ? 'deleted' : 'replaced';
      const cause = 'restart every app when the right file is in its place';
      return { what: `${name} was ${how} under this process`, store, cause };
    }
    const idNow = now === undefined ? id : idInHeader(store);
    isWritten ||= idNow === id;
    if (idNow === undefined || idNow === id || (idNow === 0 && !isWritten)) return undefined;
    return { what: `${name} was copied over under this process`, store, cause: OVERWRITTEN };
  };
}

const OVERWRITTEN = 'stop every app, delete its -wal and -shm files, copy it again, and start them';

function overwrittenSentence(path: string): string {
  return `The database ${path} was copied over one that another process has open; ${OVERWRITTEN}.`;
}

/**
 * SQLite does not wait for others when it changes the journal's mode: of several first starts at once all but one may
 * be told at once that the file is locked (seen in one of seven rounds of four), so the wait is made here.
 */
function switchToWal(database: Database) {
  const tries = Math.ceil(BUSY_MS / WAL_PAUSE_MS);
  for (let tried = 1; ; tried++) {
    try {
      database.run('PRAGMA journal_mode = WAL');
      return;
    } catch (error) {
      if (tried === tries || codeOf(error) !== 'SQLITE_BUSY') throw error;
      Bun.sleepSync(WAL_PAUSE_MS);
    }
  }
}

/** Refuses a database of a later release. */
class NewerDatabase extends Error {}

function refuseNewer(database: Database) {
  const format = database.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0;
  if (format > FORMAT) throw new NewerDatabase(`has format ${format} and this Sluice knows ${FORMAT}`);
}

function check(database: Database) {
  // An error here is a damaged header or schema; pages are checked as they are read.
  database.query('SELECT count(*) FROM sqlite_schema').get();
  const row = database.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get();
  if (row?.quick_check !== 'ok') throw new Error(row?.quick_check ?? 'quick_check gave no answer');
}

function migrate(database: Database, migrations: Migrations, extent: 'whole' | 'part') {
  database.run(
    'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL) WITHOUT ROWID',
  );
  const applied = database.query<{ name: string }, []>('SELECT name FROM migrations');
  const note = database.query(
    "INSERT INTO migrations (name, applied_at) VALUES (?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
  );
  const apply = database.transaction(() => {
    const done = new Set(applied.all().map(({ name }) => name));
    const unknown = [...done].find((name) => extent === 'whole' && !(name in migrations));
    if (unknown !== undefined)
      throw new NewerDatabase(`has the change "${unknown}", which this Sluice does not know`);
    for (const [name, sql] of Object.entries(migrations)) {
      if (done.has(name)) continue;
      database.exec(sql);
      note.run(name);
    }
    database.run(`PRAGMA user_version = ${FORMAT}`);
    giveId(database);
  });
  apply.immediate();
}

function sentenceOf(path: string, error: unknown): string {
  if (error instanceof NewerDatabase)
    return `The database ${path} ${error.message}: a newer one has run on it. Run that, or put back a backup from before it.`;
  const reason = fileReason(error);
  if (/not a database|malformed|quick_check|corrupt|Tree \d+|page \d+/i.test(reason)) {
    return `The database ${path} is corrupt (${reason}); put a backup in its place, or move it away to start empty.`;
  }
  return `The database ${path} cannot be opened (${reason}).`;
}
