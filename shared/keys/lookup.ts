import type { Clock } from '../clock.ts';
import type { KeySource, KnownKey } from './source.ts';

/** A key in memory. Mutable: `usedMinute` is the last minute since 1970 in which it was used. */
export type HeldKey = KnownKey & { readonly revision: number | undefined; usedMinute: number };

export type KeyLookup = Readonly<{
  /** `elsewhere`: the source cannot tell at once; `learn` takes what was found out. */
  find(hash: Buffer): HeldKey | 'unknown' | 'elsewhere' | 'unavailable';
  /** What `find` gives for a key that is in memory; `undefined` for any other, without asking. */
  recall(hash: Buffer): HeldKey | 'unknown' | undefined;
  /** Remembers a key as it is, or that there is none. */
  learn(hash: Buffer, key: KnownKey | undefined): HeldKey | 'unknown';
  /** Reads the revision; what was read under an older one is asked for again when it is needed. */
  refresh(): void;
}>;

/** A key that was not used for this long is forgotten, in minutes. */
const IDLE_MINUTES = 10;
/** After a read that waited in vain, the source is left alone for this long: all that is asked waits with it. */
const REST_MS = 250;
const WAITED_MS = 5;
const MINUTE_MS = 60_000;

/**
 * Finds keys by hash, from memory when the revision has not moved since they were read. A key that is in memory goes on
 * being found while the source does not answer.
 */
export function createKeyLookup(source: KeySource<'elsewhere'>, clock: Clock): KeyLookup {
  const held = createHeldKeys<HeldKey>();
  const unknown = createUnknownKeys(clock);
  let revision: number | undefined;
  let restsUntilMs = Number.NEGATIVE_INFINITY;
  let sweptMinute = minuteOf(clock.now());

  function recall(hash: Buffer): HeldKey | 'unknown' | undefined {
    const name = hash.toString('latin1');
    const hit = held.get(name);
    if (hit === undefined || hit.revision === revision) return hit;
    const found = ask(hash) ?? hit;
    return found === 'elsewhere' ? undefined : found;
  }

  function find(hash: Buffer): ReturnType<KeyLookup['find']> {
    const hit = recall(hash);
    if (hit !== undefined) return hit;
    const name = hash.toString('latin1');
    return unknown.has(name) ? 'unknown' : (ask(hash) ?? 'unavailable');
  }

  /** Reads the key; `undefined` when the source does not answer. */
  function ask(hash: Buffer): HeldKey | 'unknown' | 'elsewhere' | undefined {
    const sinceMs = clock.monotonic();
    if (sinceMs < restsUntilMs) return undefined;
    try {
      const key = source.read(hash);
      if (key !== 'elsewhere') return learn(hash, key);
      held.delete(hash.toString('latin1'));
      return key;
    } catch {
      restIfWaited(sinceMs);
      return undefined;
    }
  }

  function learn(hash: Buffer, key: KnownKey | undefined): HeldKey | 'unknown' {
    const name = hash.toString('latin1');
    if (key === undefined) {
      held.delete(name);
      unknown.add(name);
      return 'unknown';
    }
    const now: HeldKey = { ...key, revision, usedMinute: held.get(name)?.usedMinute ?? 0 };
    held.set(name, hash, now);
    return now;
  }

  function refresh(): void {
    const sinceMs = clock.monotonic();
    try {
      const value = source.revision();
      restsUntilMs = Number.NEGATIVE_INFINITY;
      if (value !== revision) unknown.clear();
      revision = value;
    } catch {
      return restIfWaited(sinceMs); // what is in memory stands until the store answers
    }
    const minute = minuteOf(clock.now());
    if (minute === sweptMinute) return;
    sweptMinute = minute;
    held.forget(({ usedMinute }) => usedMinute < minute - IDLE_MINUTES);
  }

  function restIfWaited(sinceMs: number): void {
    const nowMs = clock.monotonic();
    if (nowMs - sinceMs >= WAITED_MS) restsUntilMs = nowMs + REST_MS;
  }

  return { find, recall, learn, refresh };
}

/** The minute since 1970 that the instant is in. */
export function minuteOf(nowMs: number): number {
  return Math.floor(nowMs / MINUTE_MS);
}

/** Things in memory by the SHA-256 that they are found by; `name` is that hash as text. */
type HeldKeys<Held> = Readonly<{
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
const KEPT_MAX = 131_072;
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

/** Hashes that no key has, so that a guesser's repeats cost no look-up. */
type UnknownKeys = Readonly<{
  has(name: string): boolean;
  add(name: string): void;
  clear(): void;
}>;

/** How many are remembered; the one asked for longest ago goes first. About 150 bytes each. */
const NAMES_MAX = 50_000;
/** A key made by a way that moves no revision is found after this at the latest. */
const KEPT_MS = 10_000;

function createUnknownKeys(clock: Clock): UnknownKeys {
  const untilMs = new Map<string, number>();

  function has(name: string): boolean {
    const until = untilMs.get(name);
    if (until === undefined) return false;
    untilMs.delete(name);
    if (clock.monotonic() >= until) return false;
    untilMs.set(name, until); // now the last to go
    return true;
  }

  function add(name: string): void {
    if (untilMs.size >= NAMES_MAX)
      for (const oldest of untilMs.keys()) {
        untilMs.delete(oldest);
        break;
      }
    untilMs.set(name, clock.monotonic() + KEPT_MS);
  }

  return { has, add, clear: () => untilMs.clear() };
}
