import type { Store } from '../../shared/store/open.ts';

/** Tests that a webhook takes in any minute, whoever asks and however. */
export const TESTS_MAX = 10;
const WINDOW_MS = 60_000;

/** Says how many seconds a webhook's next test must wait, from 0 to 60. To be called in the transaction that adds it. */
export function createRecentTests(store: Store): (webhookId: string, nowMs: number) => number {
  const nthLast = store.prepare<{ at: number }, [string, number]>(`
    SELECT created_at_ms AS at FROM deliveries
    WHERE webhook_id = ?1 AND created_at_ms > ?2 AND event_kind = 'ping'
    ORDER BY created_at_ms DESC LIMIT 1 OFFSET ${TESTS_MAX - 1}`);
  return function waitSeconds(webhookId, nowMs) {
    const row = nthLast.get(webhookId, nowMs - WINDOW_MS);
    // A wall clock that was set back makes nobody wait for longer.
    return row === null ? 0 : Math.ceil(Math.min(WINDOW_MS, row.at + WINDOW_MS - nowMs) / 1_000);
  };
}
