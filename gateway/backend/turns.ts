/** Where a call stands in its batch. Calls with the same `batch` are answered in the order of their places. */
export type Sibling = Readonly<{ batch: object; place: number }>;

/** A call that waits for a place. */
export type Waiter = Readonly<{
  accountId: number;
  sibling?: Sibling | undefined;
  /** Takes the place that has become free. */
  take(): void;
}>;

/**
 * Who waits for a place at a backend: each account in its turn, and of one account the first that came. So one that has
 * thousands waiting keeps nobody waiting for more than one place of each other account. Of a batch, whose calls are
 * answered in order, the earliest takes the turn of any.
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
        const [first] = line;
        if (first === undefined) continue;
        const waiter = earliestSibling(first, line);
        // Its account's turn comes again after all others.
        lines.delete(accountId);
        line.delete(first);
        // Who gave its turn up has the other's instead.
        const rest =
          waiter === first ? line : new Set([...line].map((other) => (other === waiter ? first : other)));
        if (rest.size > 0) lines.set(accountId, rest);
        return waiter;
      }
      return undefined;
    },
  };
}

/** The first in its batch of those that wait with `waiter`. */
function earliestSibling(waiter: Waiter, line: ReadonlySet<Waiter>): Waiter {
  let earliest = waiter;
  if (waiter.sibling === undefined) return earliest;
  for (const other of line) {
    const isSibling = other.sibling?.batch === waiter.sibling.batch;
    if (isSibling && placeOf(other) < placeOf(earliest)) earliest = other;
  }
  return earliest;
}

function placeOf({ sibling }: Waiter): number {
  return sibling?.place ?? Infinity;
}
