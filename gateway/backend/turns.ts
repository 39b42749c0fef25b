/** A call that waits for a place. */
export type Waiter = Readonly<{
  accountId: number;
  /** Takes the place that has become free. */
  take(): void;
}>;

/**
 * Who waits for a place at a backend: each account in its turn, and of one account the first that came. So one that has
 * thousands waiting keeps nobody waiting for more than one place of each other account.
 */
export type Turns = Readonly<{
  add(waiter: Waiter): void;
  /** One that waits no longer. */
  remove(waiter: Waiter): void;
  /** Takes the next one out; `undefined` when nobody waits. */
  next(): Waiter | undefined;
}>;

export function createTurns(): Turns {
  /** In the order of their turns. */
  const lines = new Map<number, Set<Waiter>>();

  function remove(waiter: Waiter): void {
    const line = lines.get(waiter.accountId);
    line?.delete(waiter);
    if (line?.size === 0) lines.delete(waiter.accountId);
  }

  return {
    add(waiter) {
      const line = lines.get(waiter.accountId);
      if (line === undefined) lines.set(waiter.accountId, new Set([waiter]));
      else line.add(waiter);
    },
    remove,
    next() {
      for (const [accountId, line] of lines) {
        const [waiter] = line;
        if (waiter === undefined) continue;
        // Its account's turn comes again after all others.
        lines.delete(accountId);
        line.delete(waiter);
        if (line.size > 0) lines.set(accountId, line);
        return waiter;
      }
      return undefined;
    },
  };
}
