import type { Clock } from '../clock.ts';
import { createHeldKeys } from './held-keys.ts';
import type { KeySource, KnownKey } from './source.ts';
import { createUnknownKeys } from './unknown-keys.ts';

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
