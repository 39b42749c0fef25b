import type { Clock } from '../clock.ts';
import type { Store } from '../store/open.ts';
import type { KeyId } from './api-key.ts';
import { type HeldKey, minuteOf } from './lookup.ts';

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
    /** The uses that have waited longest. */
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
const REST_MS = 5_000;

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
      restsUntilMs = clock.monotonic() + REST_MS;
    }
  }

  return { note: waiting.note, write };
}
