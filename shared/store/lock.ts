import { Database } from 'bun:sqlite';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** A place that only one process may hold; the system gives it up when the process dies, however it dies. */
export type Lock = Readonly<{ release(): void }>;

/** How long a taker waits for a holder that is just ending, in milliseconds. */
const WAIT_MS = 1_500;

/** Held locks; a database that nobody refers to is collected, and its lock with it. */
const held = new Set<Database>();

/** Takes the lock `name` of `dataDir`, or gives `undefined` when another process goes on holding it. */
export function takeLock(dataDir: string, name: string): Lock | undefined {
  mkdirSync(dataDir, { recursive: true });
  const database = new Database(join(dataDir, `${name}.lock`), { create: true });
  try {
    database.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    database.run('BEGIN EXCLUSIVE');
  } catch {
    database.close();
    return undefined;
  }
  held.add(database);
  return {
    release: () => {
      held.delete(database);
      database.close();
    },
  };
}
