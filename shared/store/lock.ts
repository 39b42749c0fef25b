import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { codeOf, fileReason, keepPrivate } from './private.ts';

/** How long a taker waits for a holder that is just ending, in milliseconds. */
const WAIT_MS = 1_500;

/** Held locks; an unreferenced database is collected, and its lock with it. */
const held = new Set<Database>();

/**
 * Takes the lock of the app `name` on `dataDir`, or says why not in a `sentence` for the operator. Never throws. One process
 * at most holds it; the system gives it up when the process dies, however it dies.
 */
export function takeLock(dataDir: string, name: string) {
  let database: Database | undefined;
  try {
    const path = join(dataDir, `${name}.lock`);
    keepPrivate(path);
    database = new Database(path);
    database.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    database.run('BEGIN EXCLUSIVE');
  } catch (error) {
    database?.close();
    return { kind: 'refused', sentence: sentenceOf(error, dataDir, name) } as const;
  }
  const taken = database;
  held.add(taken);
  const release = () => {
    held.delete(taken);
    taken.close();
  };
  return { kind: 'locked', lock: { release } } as const;
}

function sentenceOf(error: unknown, dataDir: string, name: string): string {
  return codeOf(error) === 'SQLITE_BUSY'
    ? `Another ${name} is running on the data directory ${dataDir}.`
    : `The data directory ${dataDir} cannot be used (${fileReason(error)}).`;
}
