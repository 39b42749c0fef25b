import { Database, constants } from 'bun:sqlite';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { isBusy } from './private.ts';

/**
 * A store has a random id in its header from its creation on, which a copy of it has too. `NAME-id` beside it says which
 * one the processes that hold it have opened. So a file that was copied over an open one is seen before it is opened: the
 * write-ahead log of the first and the pages of the second make a store that is malformed.
 */
export function idInHeader(path: string): number {
  try {
    // Of the file alone, without locks and log; and by SQLite, since a close by others would give up this process's locks.
    const url = `${pathToFileURL(path).href}?immutable=1`;
    const file = new Database(url, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
    try {
      return idOf(file);
    } finally {
      file.close();
    }
  } catch {
    return 0; // there is none, or none that can be read
  }
}

export function idOf(database: Database): number {
  return database.query<{ application_id: number }, []>('PRAGMA application_id').get()?.application_id ?? 0;
}

/** Gives a new store its id, in a transaction of its migrations. */
export function giveId(database: Database): void {
  if (idOf(database) !== 0) return;
  const { id = 1 } =
    database.query<{ id: number }, []>('SELECT abs(random() % 2147483646) + 1 AS id').get() ?? {};
  database.run(`PRAGMA application_id = ${id}`);
}

/** Notes the id of a store that was opened. */
export function noteId(database: Database, path: string): void {
  const id = idOf(database);
  if (idInHeader(path) !== id) database.run('PRAGMA wal_checkpoint(PASSIVE)');
  if (notedId(path) === id) return;
  // Through a rename: another process may read it.
  const made = `${path}-id.${process.pid}`;
  writeFileSync(made, `${id}\n`, { mode: 0o600 });
  renameSync(made, `${path}-id`);
}

function notedId(path: string): number | undefined {
  try {
    return Number(readFileSync(`${path}-id`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** How long another process may take to open a file that was replaced while nothing ran. */
const NOTE_MS = 1_500;
const PAUSE_MS = 50;

/** Whether a file was put over one that another process holds. */
export function isOverwritten(path: string): boolean {
  for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
    const [id, noted] = [idInHeader(path), notedId(path)];
    if (id === 0 || noted === undefined || id === noted || !isHeld(path)) return false;
    if (waitedMs >= NOTE_MS) return true;
    Bun.sleepSync(PAUSE_MS);
  }
}

/** Whether another process, or another connection of this one, has the store open. */
export function isHeld(path: string): boolean {
  let probe: Database | undefined;
  try {
    if (idInHeader(path) === 0) return false;
    probe = new Database(path, { readwrite: true });
    probe.run('PRAGMA busy_timeout = 0');
    probe.run('PRAGMA locking_mode = EXCLUSIVE');
    probe.query('SELECT count(*) FROM sqlite_schema').get();
    return false;
  } catch (error) {
    return isBusy(error);
  } finally {
    probe?.close();
  }
}
