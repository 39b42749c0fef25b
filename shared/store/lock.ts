import { Database } from 'bun:sqlite';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileReason, isBusy, keepPrivate } from './private.ts';

/** The lock of `bun start`, which it has until the last of its apps has ended. */
export const START = 'start';

/** How long a taker waits for a holder that is just ending, in milliseconds. */
const WAIT_MS = 1_500;

/** The end of the name of a lock's file. */
const SUFFIX = '.lock';

/** Held locks; an unreferenced database is collected, and its lock with it. */
const held = new Set<Database>();

/**
 * Takes the lock of the app `name` on `dataDir`, or says why not in a `sentence` for the operator. Never throws. One process
 * at most holds it; the system gives it up when the process dies, however it dies.
 */
export function takeLock(dataDir: string, name: string) {
  let database: Database | undefined;
  try {
    const path = join(dataDir, name + SUFFIX);
    keepPrivate(path);
    database = new Database(path);
    database.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    database.run('BEGIN EXCLUSIVE');
  } catch (error) {
    database?.close();
    const isHeld = isBusy(error);
    return { kind: 'refused', isHeld, sentence: sentenceOf(error, dataDir, name) } as const;
  }
  const taken = database;
  held.add(taken);
  const release = () => {
    held.delete(taken);
    taken.close();
  };
  return { kind: 'locked', lock: { release } } as const;
}

/** Takes these locks, or none of them and says why not; in the order of the names. */
export function takeLocks(dataDir: string, names: readonly string[]) {
  const locks: Readonly<{ release(): void }>[] = [];
  for (const name of names) {
    const locking = takeLock(dataDir, name);
    if (locking.kind === 'refused') {
      for (const { release } of locks) release();
      return locking;
    }
    locks.push(locking.lock);
  }
  return { kind: 'locked', locks } as const;
}

/** The locks of all that runs on `dataDir`, or may be started on it. */
export function locksIn(dataDir: string): readonly string[] {
  const files = existsSync(dataDir) ? readdirSync(dataDir) : [];
  const taken = files.flatMap((file) => (file.endsWith(SUFFIX) ? file.slice(0, -SUFFIX.length) : []));
  return [...new Set([START, 'deploys', 'gateway', ...taken])];
}

function sentenceOf(error: unknown, dataDir: string, name: string): string {
  const folder = resolve(dataDir);
  if (!isBusy(error)) return `The data directory ${folder} cannot be used (${fileReason(error)}).`;
  const pid = holderOf(join(dataDir, name + SUFFIX));
  const which = pid === undefined ? '' : ` (process ${pid})`;
  const what = name === START ? '`bun start`' : name;
  return `${what} is already running on the data directory ${folder}${which}.`;
}

/** A process other than this one that has a lock on the file at `path`; `undefined`: none, or the system does not say (Linux does). */
export function holderOf(path: string): number | undefined {
  try {
    const { dev, ino } = statSync(path);
    const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)];
    const hex = (part: number) => part.toString(16).padStart(2, '0');
    const file = ` ${hex(major)}:${hex(minor)}:${ino} `;
    const lines = readFileSync('/proc/locks', 'utf8').split('\n');
    const held = lines.filter((line) => line.includes(file) && !line.includes('->'));
    return held.map((line) => Number(line.split(/\s+/)[4])).find((pid) => pid > 0 && pid !== process.pid);
  } catch {
    return undefined;
  }
}
