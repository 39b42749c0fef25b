import type { Clock } from '../../shared/clock.ts';
import type { KeyId } from '../../shared/keys/api-key.ts';
import { minuteOf } from '../../shared/keys/lookup.ts';
import type { KeyUses } from '../../shared/keys/uses.ts';
import type { RedisRows } from './redis-rows.ts';

/** Uses of keys whose rows are on another host, on their way there. */
export type RemoteUses = KeyUses &
  Readonly<{
    /** Tells of what is noted until `signal` aborts. Never rejects. */
    run(signal: AbortSignal): Promise<void>;
  }>;

/** How often uses are told, and how many in one message. */
const TELL_MS = 1_000;
const USES_AT_ONCE = 500;
/** Uses that wait for Redis; further ones are not noted until there is room. */
const WAITING_MAX = 100_000;

export function createRemoteUses(rows: Pick<RedisRows, 'noteUses'>, clock: Clock): RemoteUses {
  const waiting = new Map<KeyId, number>();

  async function tell(): Promise<void> {
    while (waiting.size > 0) {
      const some = [...waiting.entries().take(USES_AT_ONCE)];
      await rows.noteUses(some);
      for (const [id, atMs] of some) if (waiting.get(id) === atMs) waiting.delete(id);
    }
  }

  return {
    note(key, nowMs) {
      const minute = minuteOf(nowMs);
      if (key.usedMinute === minute) return;
      key.usedMinute = minute;
      if (waiting.size < WAITING_MAX) waiting.set(key.identity.caller.keyId, nowMs);
    },
    write: () => undefined,
    async run(signal) {
      while (!signal.aborted) {
        try {
          await tell();
        } catch {
          // They wait for a Redis that answers.
        }
        await clock.sleep(TELL_MS, signal);
      }
    },
  };
}
