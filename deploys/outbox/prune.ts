import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Store } from '../../shared/store/open.ts';

/** The newest deliveries of a webhook, which are kept beside those that are not settled. */
export const DELIVERIES_KEPT = 1_000;
const ROWS_MAX = 500;

/** Finished, and not being attempted. */
const SETTLED = 'finished_at_ms IS NOT NULL AND lease_token IS NULL AND resend_at_ms IS NULL';

/** Deletes settled deliveries of a webhook beyond the newest `DELIVERIES_KEPT`, 500 at a time; returns how many. */
export function createPruneWebhook(store: Store): (webhookId: string) => number {
  // By the index alone, because most webhooks have fewer.
  const oldestKept = store.prepare<{ at: number; id: string }, [string]>(`
    SELECT created_at_ms AS at, id FROM deliveries WHERE webhook_id = ?
    ORDER BY created_at_ms DESC, id LIMIT 1 OFFSET ${DELIVERIES_KEPT - 1}`);
  const forget = store.prepare<unknown, [string, number, string]>(`
    DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries
      WHERE webhook_id = ?1 AND created_at_ms <= ?2 AND (created_at_ms < ?2 OR id > ?3) AND ${SETTLED}
      LIMIT ${ROWS_MAX})`);
  return function pruneWebhook(webhookId) {
    const oldest = oldestKept.get(webhookId);
    return oldest === null ? 0 : forget.run(webhookId, oldest.at, oldest.id).changes;
  };
}

const DAY_MS = 86_400_000;
/** How long the bodies of answers are kept, and deliveries with their attempts. */
const ANSWERS_KEPT_MS = 30 * DAY_MS;
const DELIVERIES_KEPT_MS = 90 * DAY_MS;
/** How long those of a deleted webhook are kept, which no page shows. */
const DELETED_KEPT_MS = DAY_MS;
/** How long an Idempotency-Key leads to the webhook that it made. */
export const IDEMPOTENCY_KEPT_MS = DAY_MS;
/** Webhooks in one transaction: some milliseconds when each has as many deliveries as are kept. */
const WEBHOOKS_MAX = 20;

/** Rows that are deleted by age. Deliveries that are not settled are kept, and with them events that wait for their block time. */
export const OLD: readonly (readonly [keptMs: number, sql: string])[] = [
  [
    ANSWERS_KEPT_MS,
    `UPDATE attempts SET answer_body = NULL WHERE (delivery_id, n) IN
      (SELECT delivery_id, n FROM attempts WHERE answer_body IS NOT NULL AND started_at_ms < ? LIMIT ${ROWS_MAX})`,
  ],
  [
    DELIVERIES_KEPT_MS,
    `DELETE FROM deliveries WHERE id IN
      (SELECT id FROM deliveries WHERE created_at_ms < ? AND ${SETTLED} LIMIT ${ROWS_MAX})`,
  ],
  [
    DELETED_KEPT_MS,
    `DELETE FROM deliveries WHERE id IN (SELECT d.id FROM webhooks w CROSS JOIN deliveries d ON d.webhook_id = w.id
      WHERE w.deleted_at_ms < ? AND ${SETTLED} LIMIT ${ROWS_MAX})`,
  ],
  [
    DELIVERIES_KEPT_MS,
    `DELETE FROM events WHERE id IN (SELECT id FROM events e WHERE created_at_ms < ?
      AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id) LIMIT ${ROWS_MAX})`,
  ],
  [
    DELETED_KEPT_MS,
    `DELETE FROM webhooks WHERE id IN (SELECT id FROM webhooks w WHERE deleted_at_ms < ?
      AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = w.id) LIMIT ${ROWS_MAX})`,
  ],
  [
    IDEMPOTENCY_KEPT_MS,
    `DELETE FROM webhook_idempotency WHERE (account_id, key_hash) IN
      (SELECT account_id, key_hash FROM webhook_idempotency WHERE created_at_ms < ? LIMIT ${ROWS_MAX})`,
  ],
];

/** Deletes by age, and by number for each webhook; a portion at a time, each a transaction. `true` while there is more. */
export function createPrune(store: Store): (nowMs: number) => boolean {
  const old = OLD.map(([keptMs, sql]) => ({ keptMs, statement: store.prepare(sql) }));
  const following = store.prepare<{ id: string }, [string]>(`
    SELECT id FROM webhooks WHERE id > ? ORDER BY id LIMIT ${WEBHOOKS_MAX}`);
  const pruneWebhook = createPruneWebhook(store);
  let done = '';

  function pruneSomeWebhooks(): boolean {
    for (const { id } of following.all(done)) {
      if (pruneWebhook(id) > 0) return true;
      done = id;
    }
    const isMore = following.get(done) !== null;
    if (!isMore) done = '';
    return isMore;
  }

  const prune = store.transaction(
    (nowMs: number) =>
      old.some(({ statement, keptMs }) => statement.run(nowMs - keptMs).changes > 0) || pruneSomeWebhooks(),
  );
  return (nowMs) => prune.immediate(nowMs);
}

const HOUR_MS = 3_600_000;
/** Between two batches, so that others can write. */
const PAUSE_MS = 50;

type PruneDeps = Readonly<{ prune(nowMs: number): boolean; clock: Clock; log: Log }>;

/** Deletes what is old at the start and once a day, in batches, until `signal` aborts; after a failure, an hour later. */
export async function pruneRegularly({ prune, clock, log }: PruneDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let waitMs = DAY_MS;
    try {
      while (prune(clock.now()) && !signal.aborted) await clock.sleep(PAUSE_MS, signal);
    } catch (error) {
      log.error({ err: error }, 'deleting old deliveries failed');
      waitMs = HOUR_MS;
    }
    await clock.sleep(waitMs, signal);
  }
}
