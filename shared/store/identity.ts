import { Database, constants } from 'bun:sqlite';
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { holderOf } from './lock.ts';
import { codeOf, isBusy } from './private.ts';

/**
 * A store has a random id in its header from its creation on, which a copy of it has too. `NAME-id` beside it says which
 * one the processes that hold it have opened, and which file. So a file that was put in the place of an open one is seen
 * before it is opened: the write-ahead log of the first and the pages of the second make a store that is malformed.
 *
 * 0: the file has none, like those of earlier releases, or is no database; `undefined`: there is none, or it cannot be read.
 */
export function idInHeader(path: string): number | undefined {
  let file: Database | undefined;
  try {
    // Of the file alone, without locks and log; and by SQLite, since a close by others would give up this process's locks.
    const url = `${pathToFileURL(path).href}?immutable=1`;
    file = new Database(url, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
    return idOf(file);
  } catch (error) {
    return /^SQLITE_(?:NOTADB|CORRUPT)/.test(codeOf(error)) ? 0 : undefined;
  } finally {
    file?.close();
  }
}

/** Stands for the place of a file that the system does not show. */
export const UNSEEN = 'unseen';

/** Device and number of a file, which stay the same as long as it is the same; `undefined` when there is none. */
export function inodeOf(path: string): string | undefined {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found && `${found.dev} ${found.ino}`;
  } catch {
    return UNSEEN;
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

/** Notes the file at `path` as the one that is opened, as soon as it has an id. */
export function noteFile(path: string): void {
  const id = idInHeader(path);
  if (id === undefined || id === 0) return;
  const note = noteOf(id, path);
  if (notedAt(path) === note) return;
  // Through a rename: another process may read it.
  const made = `${path}-id.${process.pid}`;
  writeFileSync(made, note, { mode: 0o600 });
  renameSync(made, `${path}-id`);
}

/** Has the id of a store that was opened in the header of its file too, and notes it. */
export function noteId(database: Database, path: string): void {
  if (idInHeader(path) !== idOf(database)) database.run('PRAGMA wal_checkpoint(PASSIVE)');
  noteFile(path);
}

const noteOf = (id: number, path: string) => `${id} ${inodeOf(path)}\n`;

function notedAt(path: string): string | undefined {
  try {
    return readFileSync(`${path}-id`, 'utf8');
  } catch {
    return undefined;
  }
}

/** How long another process may take to open a file that was replaced while nothing ran. */
const NOTE_MS = 1_500;
const PAUSE_MS = 50;

/** Whether a file was put in the place of one that another process holds. */
export function isOverwritten(path: string): boolean {
  for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
    const [id, noted] = [idInHeader(path), notedAt(path)];
    if (id === undefined || noted === undefined || noted === noteOf(id, path)) return false;
    // Who holds a file that has no name any more still has the index of its log, by its name.
    if (!isHeld(path) && holderOf(`${path}-shm`) === undefined) return false;
    if (waitedMs >= NOTE_MS) return true;
    Bun.sleepSync(PAUSE_MS);
  }
}

/** Whether another process, or another connection of this one, has the store open, whatever the file is by now. */
export function isHeld(path: string): boolean {
  let probe: Database | undefined;
  try {
    probe = new Database(path, { readwrite: true });
    probe.run('PRAGMA busy_timeout = 0');
    probe.run('PRAGMA locking_mode = EXCLUSIVE');
    probe.run('BEGIN EXCLUSIVE');
    return false;
  } catch (error) {
    return isBusy(error);
  } finally {
    probe?.close();
  }
}
