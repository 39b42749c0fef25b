/** What is known of this process's garbage collector. */
type Heap = Readonly<{
  /** Bytes of objects, garbage not yet collected included. */
  bytes(): number;
  /** Begins a collection of everything beside what the process does; returns at once. */
  collect(): void;
  /** Collects everything at once; takes some 25 ms. */
  collectNow(): void;
  /** Collects everything at once, with code that can be made again, and gives memory back; takes some 50 ms. */
  compact(): void;
}>;

/** Below this nothing is done: so much comes and goes in steady use, and the runtime collects it by itself. */
const BYTES_MIN = 32 * 1_024 * 1_024;

/** A heap that has grown by so much since it was last small is collected. */
const GROWTH_BYTES = 16 * 1_024 * 1_024;

/**
 * One that grew by so much, or by half of what was left of it, although it was collected grows faster than that is done
 * beside the process. At most once in so many looks.
 */
const GROWTH_NOW_BYTES = 32 * 1_024 * 1_024;
const LOOKS_BETWEEN_NOW = 4;

/** At most one collection beside the process in so many looks: it takes some 20 ms of another core's time. */
const LOOKS_BETWEEN = 1;

/** A heap that grows by less than this in all of so many looks is at rest. */
const REST_BYTES = 1_024 * 1_024;
const REST_LOOKS = 20;

/** From this turn at rest on, nobody waits for the process. */
const COMPACT_TURNS = 8;

/** The last turn at rest that collects: what caches let go of within minutes is collected too, and then nothing more. */
const REST_TURNS_MAX = 64;

/**
 * Has garbage collected while there is little of it, and again when little is done. The runtime waits until the heap has
 * doubled, and a crowd of accounts that come once each lives just long enough to be taken for lasting: memory that was
 * touched once would stay resident. A heap that runs away from that is collected at once. Gives what is to be called four times a second.
 */
export function createGarbageWatch({ bytes, collect, collectNow, compact }: Heap): () => void {
  let least = Infinity;
  let leftAtLast = Infinity;
  let sinceCollected = 0;
  let sinceNow = 0;
  let looks = 0;
  let last = Infinity;
  let grown = 0;
  let restTurns = 0;

  return function look() {
    const now = bytes();
    least = Math.min(least, now);
    leftAtLast = Math.min(leftAtLast, now);
    grown += Math.max(0, now - last);
    last = now;
    sinceCollected++;
    sinceNow++;
    const isRested = ++looks % REST_LOOKS === 0 && isDueAtRest();
    const hasGrown = now >= BYTES_MIN && now - least >= GROWTH_BYTES && sinceCollected > LOOKS_BETWEEN;
    if (hasRunAway(now)) {
      collectNow();
      least = leftAtLast = bytes();
      sinceCollected = sinceNow = 0;
      return;
    }
    if (!isRested && !hasGrown) return;
    if (isRested && restTurns >= COMPACT_TURNS) compact();
    else collect();
    // What is left is seen at one of the next looks; a heap that really grew must not be collected again and again.
    least = now;
    sinceCollected = 0;
  };

  function hasRunAway(now: number): boolean {
    return sinceNow > LOOKS_BETWEEN_NOW && now - leftAtLast >= Math.max(GROWTH_NOW_BYTES, leftAtLast / 2);
  }

  /** At rest at the first turn, the second, the fourth, and so on. */
  function isDueAtRest(): boolean {
    restTurns = grown < REST_BYTES ? restTurns + 1 : 0;
    grown = 0;
    return restTurns > 0 && restTurns <= REST_TURNS_MAX && (restTurns & (restTurns - 1)) === 0;
  }
}
