/** The garbage collector of this process. */
type Heap = Readonly<{
  /** Bytes of objects, garbage that is not yet collected included. */
  bytes(): number;
  /** Starts a full collection on another thread; returns immediately. */
  collect(): void;
  /** Runs a full collection; takes some 25 ms. */
  collectNow(): void;
  /** Runs a full collection, drops compiled code that can be made again, and returns memory; takes some 50 ms. */
  compact(): void;
}>;

/** A smaller heap is left to the runtime: steady use allocates and frees that much. */
const BYTES_MIN = 32 * 1_024 * 1_024;

/** Growth since the heap was last small that starts a collection, at most in every second tick: it costs another core 20 ms. */
const GROWTH_BYTES = 16 * 1_024 * 1_024;
const TICKS_BETWEEN = 1;

/** Growth that outruns the concurrent collector is collected at once, in every fifth tick at most. */
const GROWTH_NOW_BYTES = 32 * 1_024 * 1_024;
const TICKS_BETWEEN_NOW = 4;

/** A heap that grows by less than this in so many ticks is at rest for one turn. */
const REST_BYTES = 1_024 * 1_024;
const REST_TICKS = 20;

/** The turns at rest that compact: no request waits by then, and at the last one caches have dropped what they hold for minutes. */
const COMPACT_TURNS = [8, 16, 32, 64];

/**
 * Collects garbage earlier than the runtime, which waits until the heap has doubled: what thousands of accounts allocate
 * once lives just long enough to count as long-lived, and would stay resident. Gives the tick, to be called four times a
 * second.
 */
export function createGcTuner({ bytes, collect, collectNow, compact }: Heap): () => void {
  let ticks = 0;
  let last = Infinity;
  let grown = 0;
  let restTurns = 0;
  /** The least bytes since a collection, and since a synchronous one, and the ticks of these. */
  let least = Infinity;
  let leastSinceNow = Infinity;
  let collectedTick = 0;
  let collectedNowTick = 0;

  return function tick() {
    const now = bytes();
    least = Math.min(least, now);
    leastSinceNow = Math.min(leastSinceNow, now);
    grown += Math.max(0, now - last);
    last = now;
    if (++ticks % REST_TICKS === 0) {
      restTurns = grown < REST_BYTES ? restTurns + 1 : 0;
      grown = 0;
      if (COMPACT_TURNS.includes(restTurns)) compact();
    }
    const growthNow = Math.max(GROWTH_NOW_BYTES, leastSinceNow / 2);
    if (now - leastSinceNow >= growthNow && ticks - collectedNowTick > TICKS_BETWEEN_NOW) {
      collectNow();
      least = leastSinceNow = bytes();
      collectedTick = collectedNowTick = ticks;
    } else if (now >= BYTES_MIN && now - least >= GROWTH_BYTES && ticks - collectedTick > TICKS_BETWEEN) {
      collect();
      // A later tick sees what is left. A heap that really grew must not be collected again and again.
      least = now;
      collectedTick = ticks;
    }
  };
}
