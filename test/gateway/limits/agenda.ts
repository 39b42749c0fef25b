/** Things to happen at instants, in their order; a binary heap. Things of one instant happen in the order of asking. */
export function createAgenda() {
  type Entry = { atMs: number; order: number; act(): void };
  const heap: Entry[] = [];
  let order = 0;

  const isBefore = (a: Entry, b: Entry) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

  function at(atMs: number, act: () => void): void {
    const entry = { atMs, order: order++, act };
    let i = heap.push(entry) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || !isBefore(entry, parent)) break;
      heap[i] = parent;
      i = up;
    }
    heap[i] = entry;
  }

  function pop(): Entry | undefined {
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (left === undefined) break;
      if (right !== undefined && isBefore(right, left)) child++;
      const least = heap[child];
      if (least === undefined || !isBefore(least, last)) break;
      heap[i] = least;
      i = child;
    }
    heap[i] = last;
    return top;
  }

  return {
    at,
    /** Lets happen what is due up to `untilMs`; `setNow` is told of every instant. */
    runUntil(untilMs: number, setNow: (ms: number) => void) {
      for (let next = heap[0]; next !== undefined && next.atMs <= untilMs; next = heap[0]) {
        pop();
        setNow(next.atMs);
        next.act();
      }
      setNow(untilMs);
    },
  };
}
