import type { Store } from '../../shared/store/open.ts';

const DAY_MS = 86_400_000;
/** How long the bodies of answers are kept, and deliveries with their attempts. */
export const ANSWERS_KEPT_MS = 30 * DAY_MS;
export const DELIVERIES_KEPT_MS = 90 * DAY_MS;
/** Rows of each kind in one transaction. */
const ROWS_MAX = 500;

/** Forgets what is older than it is kept, a batch at a time; `true` while there is more. A lease is never taken away. */
export function createPrune(store: Store): (nowMs: number) => boolean {
  const statements = [
    store.prepare(`
      UPDATE attempts SET answer_body = NULL WHERE (delivery_id, n) IN
        (SELECT delivery_id, n FROM attempts WHERE answer_body IS NOT NULL AND started_at_ms < $answersMs LIMIT $max)`),
    store.prepare(`
      DELETE FROM deliveries WHERE id IN
        (SELECT id FROM deliveries WHERE created_at_ms < $deliveriesMs AND lease_token IS NULL LIMIT $max)`),
    store.prepare(`
      DELETE FROM events WHERE id IN
        (SELECT id FROM events e WHERE created_at_ms < $deliveriesMs
         AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id) LIMIT $max)`),
    store.prepare(`
      DELETE FROM webhooks WHERE id IN
        (SELECT id FROM webhooks w WHERE deleted_at_ms < $deliveriesMs
         AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = w.id) LIMIT $max)`),
  ];
  const prune = store.transaction((nowMs: number) => {
    const bounds = {
      answersMs: nowMs - ANSWERS_KEPT_MS,
      deliveriesMs: nowMs - DELIVERIES_KEPT_MS,
      max: ROWS_MAX,
    };
    return statements.some((statement) => {
      const { answersMs, ...deliveries } = bounds;
      const own = statement === statements[0] ? { answersMs, max: ROWS_MAX } : deliveries;
      return statement.run(own).changes > 0;
    });
  });
  return (nowMs) => prune.immediate(nowMs);
}
