/** Things in memory by the SHA-256 that they are found by; `name` is that hash as text. */
export type HeldKeys<Held> = Readonly<{
  get(name: string): Held | undefined;
  /** Holds it; one that is new takes the place of an older one when there is no room. */
  set(name: string, hash: Buffer, held: Held): void;
  delete(name: string): void;
  /** Forgets all that are idle. */
  forget(isIdle: (held: Held) => boolean): void;
}>;

/** Keys that were read for the first time in a while: most of many are never seen again. */
const NEW_MAX = 2_048;
/** Keys that were read twice; the oldest go first. About 400 bytes each. */
const KEPT_MAX = 30_720;
/** Reads that are remembered, a number each. */
const READS = 65_536;

/**
 * Remembers by number alone what was read lately, and keeps for long only what is read a second time: a million keys
 * that come once each must neither drive out those in use, nor live so long that they cost more than a short collection.
 */
export function createHeldKeys<Held>(newMax = NEW_MAX, keptMax = KEPT_MAX): HeldKeys<Held> {
  const fresh = new Map<string, Held>();
  const kept = new Map<string, Held>();
  const reads = new Uint32Array(READS);

  function set(name: string, hash: Buffer, held: Held): void {
    const home = kept.has(name) ? kept : fresh.has(name) ? fresh : undefined;
    if (home !== undefined) return void home.set(name, held);
    const place = hash.readUInt16LE(0);
    const read = hash.readUInt32LE(2);
    if (reads[place] === read) add(kept, keptMax, name, held);
    else add(fresh, newMax, name, held);
    reads[place] = read;
  }

  return {
    get: (name) => kept.get(name) ?? fresh.get(name),
    set,
    delete(name) {
      kept.delete(name);
      fresh.delete(name);
    },
    forget(isIdle) {
      for (const part of [kept, fresh]) for (const [name, held] of part) if (isIdle(held)) part.delete(name);
    },
  };
}

function add<Held>(part: Map<string, Held>, max: number, name: string, held: Held): void {
  if (part.size >= max)
    for (const oldest of part.keys()) {
      part.delete(oldest);
      break;
    }
  part.set(name, held);
}
