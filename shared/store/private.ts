import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';

const { R_OK, W_OK, X_OK } = constants;
/** SQLite's companions of a database; it gives new ones the database's own mode. */
const COMPANIONS = ['-wal', '-shm', '-journal'];

/**
 * Makes the file at `path` and its folder where they are not there, and takes from those that are there what users other
 * than their owner may do. Throws what keeps this process from reading or writing them.
 */
export function keepPrivate(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  tighten(folder);
  accessSync(folder, R_OK | W_OK | X_OK);
  try {
    // Only a new file is opened: to close one that is there would give up the locks that this process has on it.
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  closeToOthers(path);
  for (const suffix of COMPANIONS) {
    const companion = `${path}${suffix}`;
    try {
      closeToOthers(companion);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') continue; // another process has ended its transaction meanwhile
      throw new Error(`${companion}: ${fileReason(error)}`, { cause: error });
    }
  }
}

function closeToOthers(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (found.isDirectory()) openSync(file, 'r+'); // throws the system's error
  tighten(file);
  accessSync(file, R_OK | W_OK);
}

/** Leaves to the owner of a file or folder, where there is one, what he may do, and nothing to others. */
export function tighten(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & 0o077) === 0) return;
  if (!found.isFile() && !found.isDirectory()) return; // a device is everybody's
  try {
    chmodSync(path, found.mode & 0o7700);
  } catch (error) {
    if (codeOf(error) !== 'EPERM') throw error; // it is another user's, who decides
  }
}

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is no folder',
  EEXIST: 'a part of its path is no folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  SQLITE_FULL: 'the disk is full',
  EIO: 'the disk fails',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
};

/** Why a file could not be used, as a clause of one line. */
export function fileReason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return WORDS[codeOf(error)] ?? message.replaceAll(/\s+/g, ' ').trim();
}

/** A sentence for what files and databases refuse to a running command or start. Anything else is thrown again. */
export function fileComplaint(error: unknown): string {
  const reason = fileReason(error);
  if (codeOf(error).startsWith('SQLITE_')) return `A database could not be read or written (${reason}).`;
  if (!(error instanceof Error && 'syscall' in error && 'path' in error)) throw error;
  return `The file ${String(error.path)} could not be used (${reason}).`;
}

/** Why a database cannot be written now, as a clause; `undefined`: the error is another one. An operator mends it, no program. */
export function unwritableReason(error: unknown): string | undefined {
  const isDisk = /^(?:SQLITE_(?:FULL|IOERR|READONLY|BUSY|LOCKED|CANTOPEN)|ENOSPC|EDQUOT|EIO|EROFS)/;
  return isDisk.test(codeOf(error)) ? fileReason(error) : undefined;
}

/** The system's or SQLite's code of an error; empty when it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY');
}

/** File descriptors that this process may have; infinite where the system does not say (it does on Linux). */
export function descriptorsMax(): number {
  try {
    return Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}

/**
 * About how many descriptors this process has in use, for the price of opening one: the system gives out the lowest that
 * is free. `undefined`: there is none left, here or in the whole system.
 */
export function descriptorsInUse(): number | undefined {
  try {
    const lowest = openSync('/dev/null', 'r');
    closeSync(lowest);
    return lowest;
  } catch (error) {
    return ['EMFILE', 'ENFILE'].includes(codeOf(error)) ? undefined : 0;
  }
}

/** The part of them above which they are short. */
const SHORT = 0.9;

/** Tells of a shortage of descriptors, as a clause with its cause; `stops`: nothing can be opened. `undefined`: there is none. */
export function descriptorTrouble(max: number) {
  const used = descriptorsInUse();
  if (used === undefined)
    return { what: 'no file descriptor is left', cause: `ulimit -n is ${max}`, stops: true };
  if (used < SHORT * max) return undefined;
  return { what: 'file descriptors are short', cause: `about ${used} of ${max} are in use`, stops: false };
}
