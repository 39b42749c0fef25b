import { type Clock, retryAfterSeconds } from '../../shared/clock.ts';
import type { KeyId } from '../../shared/keys/api-key.ts';
import type { Store } from '../../shared/store/open.ts';

/** Requests one key may send in any `WINDOW_MS` (docs/spec.md 6). */
export const REQUESTS_MAX = 60;
export const WINDOW_MS = 60_000;
/** An instant of one clock reckoned by the other is off by less. */
const ROUNDING_MS = 0.001;
/** Keys with a log in memory, about 1 kB each. Above it the key that has been quiet longest is forgotten. */
const KEYS_MAX = 50_000;

export type EntryVerdict =
  | { readonly kind: 'entered' }
  /** `retryAfterSeconds` is at least 1; a request after exactly that wait is entered. */
  | { readonly kind: 'over-rate'; readonly retryAfterSeconds: number };

/** Enters a request of a key at `nowMs` (monotonic milliseconds, with fractions), or refuses it without a trace. */
export type Enter<Key = KeyId> = (key: Key, nowMs: number) => EntryVerdict;

/** Logs that outlive the process. Instants are monotonic milliseconds of this process. */
type KeptLogs<Key> = Readonly<{
  /** Those of the last minute, oldest use first. */
  recent(): Iterable<readonly [Key, readonly number[]]>;
  keep(key: Key, log: readonly number[]): void;
}>;

/** A sliding log: no 60 seconds hold more than 60 requests, where a bucket or a fixed window would let up to twice as many through. */
export function createRequestLog<Key = KeyId>(keysMax: number = KEYS_MAX, kept?: KeptLogs<Key>): Enter<Key> {
  /** Oldest use first, because every entry moves its key to the end. */
  const logs = new Map<Key, readonly number[]>(kept?.recent());

  return function enter(key, nowMs) {
    const log = (logs.get(key) ?? []).filter((atMs) => nowMs - atMs < WINDOW_MS);
    const [oldestMs] = log;
    if (log.length >= REQUESTS_MAX && oldestMs !== undefined) {
      const seconds = retryAfterSeconds(oldestMs + WINDOW_MS - nowMs);
      // Sums of fractions are rounded: a caller that waits exactly so long must not be refused for it.
      const isShort = nowMs + seconds * 1_000 - oldestMs < WINDOW_MS;
      return { kind: 'over-rate', retryAfterSeconds: isShort ? seconds + 1 : seconds };
    }
    logs.delete(key);
    const [quietest = key] = logs.keys();
    if (logs.size >= keysMax) logs.delete(quietest);
    log.push(nowMs);
    logs.set(key, log);
    kept?.keep(key, log);
    return { kind: 'entered' };
  };
}

type KeptDeps = Readonly<{
  /** On a connection that does not wait for the disk: only a power cut may lose what it wrote. */
  store: Store;
  clock: Clock;
  /** Hears that a request could not be written; it counts in this process all the same. */
  noteBroken(error: unknown): void;
}>;

/** The logs of the keys of `api` in `store`. Each request is written before it is answered, which costs about 20 µs. */
export function keptRequests(api: string, { store, clock, noteBroken }: KeptDeps): KeptLogs<KeyId> {
  const forget = store.prepare('DELETE FROM api_requests WHERE api = ?1 AND last_at_ms <= ?2');
  const all = store.prepare<{ key_id: KeyId; at_ms_json: string }, [string]>(`
    SELECT key_id, at_ms_json FROM api_requests WHERE api = ? ORDER BY last_at_ms LIMIT ${KEYS_MAX}`);
  const put = store.prepare(`
    INSERT INTO api_requests VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (api, key_id) DO UPDATE SET last_at_ms = excluded.last_at_ms, at_ms_json = excluded.at_ms_json`);
  const aheadMs = () => clock.now() - clock.monotonic();

  return {
    recent() {
      forget.run(api, clock.now() - WINDOW_MS);
      // A clock that was set back in between makes nobody wait longer than a minute.
      const [offMs, nowMs] = [aheadMs(), clock.monotonic()];
      const instantsIn = (json: string) =>
        (JSON.parse(json) as number[]).map((atMs) => Math.min(atMs - offMs, nowMs)); // as `keep` wrote it
      return all.all(api).map(({ key_id, at_ms_json }) => [key_id, instantsIn(at_ms_json)] as const);
    },
    keep(key, log) {
      const offMs = aheadMs();
      const instants = log.map((atMs) => Math.ceil(atMs + offMs - ROUNDING_MS));
      try {
        put.run(api, key, instants.at(-1) ?? 0, JSON.stringify(instants));
      } catch (error) {
        noteBroken(error);
      }
    },
  };
}
