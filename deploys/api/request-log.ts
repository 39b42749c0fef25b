import type { KeyId } from '../../shared/keys/api-key.ts';

/** Requests one key may send in any `WINDOW_MS` (spec 8). */
export const REQUESTS_MAX = 60;
/** One minute, in milliseconds. */
export const WINDOW_MS = 60_000;
/** Keys with a log in memory, about 1 kB each. Above it the key that has been quiet longest is forgotten. */
const KEYS_MAX = 50_000;

export type Entry =
  | { readonly kind: 'entered' }
  /** `retryAfterSeconds` is at least 1; a request after exactly that wait is entered. */
  | { readonly kind: 'over-rate'; readonly retryAfterSeconds: number };

/** Enters a request of a key at `now` (monotonic milliseconds, with fractions), or refuses it without a trace. */
export type Enter<Key = KeyId> = (key: Key, now: number) => Entry;

/**
 * A sliding log: the instants of every request of the last minute, so that no 60 seconds anywhere hold more than
 * 60 requests. A bucket or a fixed window would let up to twice as many through.
 */
export function createRequestLog<Key = KeyId>(keysMax: number = KEYS_MAX): Enter<Key> {
  /** Oldest use first, because every entry moves its key to the end. */
  const logs = new Map<Key, number[]>();

  return function enter(key, now) {
    // Whole milliseconds, or the rounding of fractions could refuse a caller that waited exactly as told. The
    // present is rounded down and what is noted up, so a minute is never shorter for it.
    const nowMs = Math.floor(now);
    const log = (logs.get(key) ?? []).filter((atMs) => nowMs - atMs < WINDOW_MS);
    const [oldestMs] = log;
    if (log.length >= REQUESTS_MAX && oldestMs !== undefined) {
      const waitMs = oldestMs + WINDOW_MS - nowMs;
      return { kind: 'over-rate', retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) };
    }
    logs.delete(key);
    if (logs.size >= keysMax) forgetQuietest(logs);
    logs.set(key, [...log, Math.ceil(now)]);
    return { kind: 'entered' };
  };
}

function forgetQuietest<Key>(logs: Map<Key, unknown>) {
  for (const key of logs.keys()) {
    logs.delete(key);
    return;
  }
}
