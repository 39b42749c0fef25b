import type { Store } from '../../shared/store/open.ts';

/** Deliveries of a webhook that are kept, the newest; what is not settled is kept beside them. */
export const DELIVERIES_KEPT = 1_000;
/** Rows in one transaction. */
const ROWS_MAX = 500;

/** Nothing more will happen to it by itself, and nobody is at it. */
export const SETTLED = 'finished_at_ms IS NOT NULL AND lease_token IS NULL AND resend_at_ms IS NULL';

/** Forgets settled deliveries of a webhook beyond the newest `DELIVERIES_KEPT`, 500 at a time; gives how many. */
export function createTrim(store: Store): (webhookId: string) => number {
  // By the index alone, so that a look at a webhook that has no more than that costs next to nothing.
  const oldestKept = store.prepare<{ at: number; id: string }, [string]>(`
    SELECT created_at_ms AS at, id FROM deliveries WHERE webhook_id = ?
    ORDER BY created_at_ms DESC, id LIMIT 1 OFFSET ${DELIVERIES_KEPT - 1}`);
  const forget = store.prepare<unknown, [string, number, string]>(`
    DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries
      WHERE webhook_id = ?1 AND created_at_ms <= ?2 AND (created_at_ms < ?2 OR id > ?3) AND ${SETTLED}
      LIMIT ${ROWS_MAX})`);
  return function trim(webhookId) {
    const oldest = oldestKept.get(webhookId);
    return oldest === null ? 0 : forget.run(webhookId, oldest.at, oldest.id).changes;
  };
}
