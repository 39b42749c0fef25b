import { crc32 } from 'node:zlib';
import type { Clock } from '../clock.ts';
import { type ApiKey, hashOf, type KeyId } from './api-key.ts';
import type { KeySource, KnownKey } from './source.ts';
import type { Store } from '../store/open.ts';

/** A key in memory. Mutable: `usedMinute` is the last minute since 1970 in which it was used. */
export type HeldKey = KnownKey & { readonly revision: number | undefined; usedMinute: number };

/** Keys in memory: those read for the first time in a while, of which most never come again, and those read twice. 700 bytes each. */
const NEW_MAX = 2_048;
const KEPT_MAX = 131_072;
/** Reads that are remembered, a number each. */
const READS = 262_144;
/** Texts that are no key, 150 bytes each. */
const UNKNOWN_MAX = 50_000;
/** A key made by a way that moves no revision is found after this at the latest. */
const UNKNOWN_MS = 10_000;
/** A key that was not used for this long is forgotten, in minutes. */
const IDLE_MINUTES = 10;
/** After a read that waited in vain, the source is not read for this long: every request would wait with it. */
const REST_MS = 250;
const WAITED_MS = 5;
const MINUTE_MS = 60_000;

/**
 * Finds keys by their text, from memory when the revision has not moved since they were read: only what is not in
 * memory is hashed. A key that is in memory goes on being found while the source does not answer. What was read lately is
 * remembered by a number: a million keys that come once each neither drive out those in use nor fill the memory.
 */
export function createKeyLookup(source: KeySource<'elsewhere'>, clock: Clock) {
  const kept = new Map<string, HeldKey>();
  const fresh = new Map<string, HeldKey>();
  const reads = new Uint32Array(READS);
  /** Until when each is known not to be a key, so that a guesser's repeats cost no look-up. */
  const unknown = new Map<string, number>();
  let revision: number | undefined;
  let restsUntilMs = Number.NEGATIVE_INFINITY;
  let sweptMinute = minuteOf(clock.now());

  /** Recalls a key that is in memory; `undefined` for any other text, without asking. */
  function recall(text: string): HeldKey | 'unknown' | undefined {
    const hit = kept.get(text) ?? fresh.get(text);
    if (hit === undefined || hit.revision === revision) return hit;
    const found = ask(text as ApiKey) ?? hit; // only keys are held
    return found === 'elsewhere' ? undefined : found;
  }

  /** `elsewhere`: the source cannot tell at once; `learn` takes what was found out. */
  function find(key: ApiKey): HeldKey | 'unknown' | 'elsewhere' | 'unavailable' {
    const hit = recall(key);
    if (hit !== undefined) return hit;
    return clock.monotonic() < (unknown.get(key) ?? -Infinity) ? 'unknown' : (ask(key) ?? 'unavailable');
  }

  /** Reads the key; `undefined` when the source does not answer. */
  function ask(key: ApiKey): HeldKey | 'unknown' | 'elsewhere' | undefined {
    const sinceMs = clock.monotonic();
    if (sinceMs < restsUntilMs) return undefined;
    try {
      const known = source.read(hashOf(key));
      if (known !== 'elsewhere') return learn(key, known, revision);
      forget(key);
      return known;
    } catch {
      restIfWaited(sinceMs);
      return undefined;
    }
  }

  /** Remembers a key as it was at a revision, or that there was none. */
  function learn(key: ApiKey, known: KnownKey | undefined, asOf: number | undefined): HeldKey | 'unknown' {
    if (known === undefined) {
      forget(key);
      unknown.delete(key); // now the last to go
      // A key that was made while it was looked up is there the next time.
      if (asOf === revision) put(unknown, UNKNOWN_MAX, key, clock.monotonic() + UNKNOWN_MS);
      return 'unknown';
    }
    const before = kept.get(key) ?? fresh.get(key);
    const now: HeldKey = { ...known, revision: asOf, usedMinute: before?.usedMinute ?? 0 };
    const read = crc32(key) >>> 0;
    const isAgain = reads[read % READS] === read && before === undefined;
    reads[read % READS] = read;
    if (isAgain || kept.has(key)) put(kept, KEPT_MAX, key, now);
    else put(fresh, NEW_MAX, key, now);
    return now;
  }

  function forget(key: string): void {
    kept.delete(key);
    fresh.delete(key);
  }

  /** Reads the revision; what was read under an older one is read again when it is needed. */
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
    for (const keys of [kept, fresh])
      for (const [key, { usedMinute }] of keys) if (usedMinute < minute - IDLE_MINUTES) keys.delete(key);
  }

  function restIfWaited(sinceMs: number): void {
    const nowMs = clock.monotonic();
    if (nowMs - sinceMs >= WAITED_MS) restsUntilMs = nowMs + REST_MS;
  }

  return {
    find,
    recall,
    learn,
    refresh,
    /** The revision that was read last; `undefined`: none was. */
    revision: () => revision,
  } as const;
}

function minuteOf(nowMs: number): number {
  return Math.floor(nowMs / MINUTE_MS);
}

/** Puts what is new in the place of the oldest when there are `max`. */
function put<Value>(map: Map<string, Value>, max: number, key: string, value: Value): void {
  const oldest = map.size >= max && !map.has(key) ? map.keys().next().value : undefined;
  if (oldest !== undefined) map.delete(oldest);
  map.set(key, value);
}

/** When keys were used last: noted as they are, written later. */
export type KeyUses = Readonly<{
  /** Costs a comparison, but for a key's first use in a minute. */
  note(key: HeldKey, nowMs: number): void;
  /** Writes what is noted, in one transaction of bounded length; what cannot be written waits for a later call. Never throws. */
  write(): void;
}>;

/** Uses that wait to be written; further ones are not noted until there is room. */
const WAITING_MAX = 25_000;

/** Notes a key's first use in each minute, for `some` and `done` to write them elsewhere. */
export function createWaitingUses() {
  const waiting = new Map<KeyId, number>();
  const note: KeyUses['note'] = (key, nowMs) => {
    const minute = minuteOf(nowMs);
    if (key.usedMinute === minute) return;
    key.usedMinute = minute;
    if (waiting.size < WAITING_MAX) waiting.set(key.identity.caller.keyId, nowMs);
  };
  return {
    note,
    some: (most: number): readonly (readonly [KeyId, atMs: number])[] => [...waiting.entries().take(most)],
    /** Forgets uses that are written, but not those that were noted again. */
    done(uses: readonly (readonly [KeyId, atMs: number])[]): void {
      for (const [id, atMs] of uses) if (waiting.get(id) === atMs) waiting.delete(id);
    },
  };
}

/** Rows in one transaction; in a table of many keys they take some 3 ms, which every request then waits. */
const ROWS_MAX = 100;
/** After a write that failed there is none for this long: a database that another process writes to is waited for. */
const FAILED_REST_MS = 5_000;

/**
 * Notes uses for `last_used_at_ms` of `store`. A key's row is written at most once a minute, by however many processes
 * it is used, with the instant of its first use in that minute; this moves no revision.
 */
export function createKeyUses(store: Store, clock: Clock): KeyUses {
  const update = store.prepare<null, [number, KeyId]>(`
    UPDATE keys SET last_used_at_ms = ?1
    WHERE id = ?2 AND (last_used_at_ms IS NULL OR last_used_at_ms / 60000 < ?1 / 60000)`);
  const waiting = createWaitingUses();
  let restsUntilMs = Number.NEGATIVE_INFINITY;
  const writeSome = store.transaction((uses: ReturnType<typeof waiting.some>) => {
    for (const [id, atMs] of uses) update.run(atMs, id);
  });

  function write(): void {
    const uses = waiting.some(ROWS_MAX);
    if (uses.length === 0 || clock.monotonic() < restsUntilMs) return;
    try {
      writeSome.immediate(uses);
      waiting.done(uses);
    } catch {
      restsUntilMs = clock.monotonic() + FAILED_REST_MS;
    }
  }

  return { note: waiting.note, write };
}
