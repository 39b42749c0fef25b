import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import type { KeyUse, RedisHead } from './redis-head.ts';

/** How often last uses are taken, and how many in one transaction. */
const TAKE_MS = 2_000;
const USES_AT_ONCE = 200;

/**
 * Takes over when keys were used last on other hosts, a row at most once a minute, while `isOwn` says that the keys are
 * this database's. Never rejects.
 */
export async function takeLastUses(
  { store, head, isOwn, clock }: Readonly<{ store: Store; head: RedisHead; isOwn(): boolean; clock: Clock }>,
  signal: AbortSignal,
): Promise<void> {
  const update = store.prepare<null, [number, string]>(`
    UPDATE keys SET last_used_at_ms = ?1
    WHERE id = ?2 AND (last_used_at_ms IS NULL OR last_used_at_ms / 60000 < ?1 / 60000)`);
  const write = store.transaction((uses: readonly KeyUse[]) => {
    for (const { keyId, atMs } of uses) update.run(atMs, keyId);
  });
  while (!signal.aborted) {
    await clock.sleep(TAKE_MS, signal);
    try {
      while (isOwn() && !signal.aborted) {
        const uses = await head.uses(USES_AT_ONCE);
        if (uses.length === 0) break;
        write.immediate(uses);
        await head.dropUses(uses);
      }
    } catch {
      // Redis or the database does not answer; they are taken the next time.
    }
  }
}
