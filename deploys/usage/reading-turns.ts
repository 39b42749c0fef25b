import type { Clock } from '../../shared/clock.ts';

/** Somebody who reads much of the ledger, a part at a time. */
export type Reader = Readonly<{
  /** Resolves when the next part may be read, and everything else here had its turn; or when `signal` aborts. */
  turn(signal: AbortSignal): Promise<void>;
  /** Must be called once. */
  leave(): void;
}>;

/**
 * Has those who read much take turns: one part of one reader at a time, and each account in its turn. So whoever looks at
 * a year of usage a hundred times at once makes nobody wait for more than one part of theirs.
 */
export type ReadingTurns = Readonly<{
  /** A reader of an account's usage; `undefined` while as many as there may be read it. */
  enter(accountId: number): Reader | undefined;
}>;

/** Readers of one account at once: its users in a few windows each. */
const READERS_MAX = 8;
const PAUSE_MS = 1;

export function createReadingTurns(clock: Pick<Clock, 'sleep'>): ReadingTurns {
  const readers = new Map<number, number>();
  /** Who waits, in the order of the accounts' turns. */
  const lines = new Map<number, Set<() => void>>();
  const always = new AbortController().signal;
  let serving = false;

  async function serve(): Promise<void> {
    if (serving) return;
    serving = true;
    for (let next = takeNext(); next !== undefined; next = takeNext()) {
      next();
      await clock.sleep(PAUSE_MS, always);
    }
    serving = false;
  }

  function takeNext(): (() => void) | undefined {
    for (const [accountId, line] of lines) {
      lines.delete(accountId);
      const [first] = line;
      if (first === undefined) continue;
      line.delete(first);
      if (line.size > 0) lines.set(accountId, line);
      return first;
    }
    return undefined;
  }

  function turn(accountId: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const line = lines.get(accountId) ?? new Set();
    lines.set(accountId, line.add(resolve));
    const stop = () => {
      lines.get(accountId)?.delete(resolve);
      resolve();
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    void serve();
    return promise.finally(() => signal.removeEventListener('abort', stop));
  }

  return {
    enter(accountId) {
      const reading = readers.get(accountId) ?? 0;
      if (reading >= READERS_MAX) return undefined;
      readers.set(accountId, reading + 1);
      return {
        turn: (signal) => turn(accountId, signal),
        leave() {
          const left = (readers.get(accountId) ?? 1) - 1;
          if (left === 0) readers.delete(accountId);
          else readers.set(accountId, left);
        },
      };
    },
  };
}
