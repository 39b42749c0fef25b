/** Things to happen at instants, in their order. Things of one instant happen in the order of asking. */
export function createAgenda() {
  /** The latest first, so that the next one is the last. */
  const entries: { atMs: number; act(): void }[] = [];

  function at(atMs: number, act: () => void): void {
    let [low, high] = [0, entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((entries[middle]?.atMs ?? 0) > atMs) low = middle + 1;
      else high = middle;
    }
    entries.splice(low, 0, { atMs, act });
  }

  return {
    at,
    /** Lets happen what is due up to `untilMs`; `setNow` is told of every instant. */
    runUntil(untilMs: number, setNow: (ms: number) => void) {
      for (let next = entries.at(-1); next !== undefined && next.atMs <= untilMs; next = entries.at(-1)) {
        entries.pop();
        setNow(next.atMs);
        next.act();
      }
      setNow(untilMs);
    },
  };
}
