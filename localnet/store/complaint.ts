/*
 * Why a database could not be opened. SQLite names neither the file nor the reason ("unable to open database file"),
 * so the file system is asked as well.
 */
import { accessSync, closeSync, constants, existsSync, openSync } from 'node:fs';
import { dirname } from 'node:path';

/** What a failed check throws: with this, and only with this, the file itself is bad. */
export class DamagedDatabase extends Error {}

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is no folder',
  EEXIST: 'a part of its path is no folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EIO: 'the disk fails',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
};

/**
 * One clause for the operator on what keeps `path` from being opened. Only a file that is itself bad is advised to be
 * removed: anything else would cost a chain that is whole.
 */
export function complaintAbout(path: string, cause: unknown): string {
  const message = oneLine(cause instanceof Error ? cause.message : String(cause));
  const code = codeOf(cause);
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED'))
    return 'another localnet runs on it';
  if (
    cause instanceof DamagedDatabase ||
    code.startsWith('SQLITE_NOTADB') ||
    code.startsWith('SQLITE_CORRUPT')
  )
    return `${message}; remove the file to start a new chain`;
  if (code === 'SQLITE_FULL') return 'the disk is full';
  if (!code.startsWith('SQLITE_')) return WORDS[code] ?? message;
  const found = obstacleAt(path);
  return found === undefined ? message : `${found} (${message})`;
}

/** What the file system says about the files that SQLite opens, changing none of them. */
function obstacleAt(path: string): string | undefined {
  if (!existsSync(path)) {
    const folder = dirname(path);
    return attempt(`its folder ${folder}`, () => accessSync(folder, constants.W_OK | constants.X_OK));
  }
  for (const suffix of ['', '-wal', '-shm']) {
    const file = `${path}${suffix}`;
    if (!existsSync(file)) continue;
    const found = attempt(suffix === '' ? '' : file, () => closeSync(openSync(file, 'r+')));
    if (found !== undefined) return found;
  }
  return undefined;
}

function attempt(name: string, act: () => void): string | undefined {
  try {
    act();
    return undefined;
  } catch (cause) {
    const why = WORDS[codeOf(cause)] ?? (codeOf(cause) || String(cause));
    return name === '' ? why : `${name}: ${why}`;
  }
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
