import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { codeOf, fileReason, keepPrivate } from '../../shared/store/private.ts';
import { SCHEMA, SCHEMA_VERSION } from './schema.ts';

const BUSY_TIMEOUT_MS = 2_000;

/**
 * Opens `<dataDir>/localnet.db`, or a database in memory when `dataDir` is undefined. One process owns it: a second
 * one is refused. Throws an Error with one sentence for the operator when the file cannot be used.
 */
export function openDatabase(dataDir: string | undefined): Database {
  const path = dataDir === undefined ? ':memory:' : join(dataDir, 'localnet.db');
  try {
    if (dataDir !== undefined) keepPrivate(path);
    return prepared(new Database(path, { create: true, strict: true, safeIntegers: true }));
  } catch (cause) {
    throw new Error(`The localnet's database ${path} cannot be used: ${complaintAbout(cause)}.`, {
      cause,
    });
  }
}

function prepared(db: Database): Database {
  try {
    prepare(db);
    return db;
  } catch (cause) {
    db.close();
    throw cause;
  }
}

function prepare(db: Database): void {
  db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  // Exclusive: two chains on one file would each overwrite the other's accounts.
  db.run('PRAGMA locking_mode = EXCLUSIVE');
  db.run('PRAGMA journal_mode = WAL');
  db.run('PRAGMA synchronous = NORMAL');
  const { user_version: version } = db.query<{ user_version: bigint }, []>('PRAGMA user_version').get() ?? {
    user_version: 0n,
  };
  if (version !== 0n && version !== BigInt(SCHEMA_VERSION))
    throw new Error(`its format is ${version}, not ${SCHEMA_VERSION}; another version of localnet made it`);
  const check = db.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get();
  if (check?.quick_check !== 'ok') throw new DamagedDatabase('it is damaged');
  db.run('BEGIN IMMEDIATE');
  db.exec(SCHEMA);
  db.run(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  db.run('COMMIT');
}

/** What a failed check throws: with this, and only with this, the file itself is bad. */
class DamagedDatabase extends Error {}

/**
 * One clause for the operator on what keeps the file from being opened. Only a file that is itself bad is advised to be
 * removed: anything else would cost a chain that is whole.
 */
function complaintAbout(cause: unknown): string {
  const message = fileReason(cause);
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
  return message;
}
