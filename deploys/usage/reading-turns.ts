import type { Clock } from '../../shared/clock.ts';

/** Somebody who reads much of the ledger, a part at a time. */
export type Reader = Readonly<{
  /** Resolves when the next part may be read, and everything else here had its turn; or when `signal` aborts. */
  turn(signal: AbortSignal): Promise<void>;
  /** Must be called once. */
  leave(): void;
}>;

/**
 * Has those who read much take turns: one part at a time, and each user in their turn. So whoever looks at a year of usage
 * a hundred times at once makes nobody wait for more than one part of theirs.
 */
export type ReadingTurns = Readonly<{
  /** `undefined` while the user reads in as many places as there may be. */
  enter(userId: string): Reader | undefined;
}>;

/** Of one user at once: a few windows and files. */
const READERS_MAX = 8;
const PAUSE_MS = 1;

export function createReadingTurns(clock: Pick<Clock, 'sleep'>): ReadingTurns {
  const readers = new Map<string, number>();
  /** Who waits, in the order of the users' turns. */
  const lines = new Map<string, Set<() => void>>();
  const always = new AbortController().signal;
  let serving = false;

  async function serve(): Promise<void> {
    if (serving) return;
    serving = true;
    try {
      for (let next = takeNext(); next !== undefined; next = takeNext()) {
        next();
        await clock.sleep(PAUSE_MS, always);
      }
    } finally {
      serving = false;
    }
  }

  function takeNext(): (() => void) | undefined {
    for (const [userId, line] of lines) {
      lines.delete(userId);
      const [first] = line;
      if (first === undefined) continue;
      line.delete(first);
      if (line.size > 0) lines.set(userId, line);
      return first;
    }
    return undefined;
  }

  function turn(userId: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const line = lines.get(userId) ?? new Set();
    lines.set(userId, line.add(resolve));
    const stop = () => {
      lines.get(userId)?.delete(resolve);
      resolve();
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    void serve();
    return promise.finally(() => signal.removeEventListener('abort', stop));
  }

  return {
    enter(userId) {
      const reading = readers.get(userId) ?? 0;
      if (reading >= READERS_MAX) return undefined;
      readers.set(userId, reading + 1);
      return {
        turn: (signal) => turn(userId, signal),
        leave() {
          const left = (readers.get(userId) ?? 1) - 1;
          if (left === 0) readers.delete(userId);
          else readers.set(userId, left);
        },
      };
    },
  };
}
