import type { Store } from '../../shared/store/open.ts';
import { createTrim, SETTLED } from './trim.ts';

const DAY_MS = 86_400_000;
/** How long the bodies of answers are kept, and deliveries with their attempts. */
export const ANSWERS_KEPT_MS = 30 * DAY_MS;
export const DELIVERIES_KEPT_MS = 90 * DAY_MS;
/** How long those of a deleted webhook are, which nobody can look at. */
export const DELETED_KEPT_MS = DAY_MS;
/** How long an Idempotency-Key leads to the webhook that it made. */
export const IDEMPOTENCY_KEPT_MS = DAY_MS;
/** Rows of each kind in one transaction. */
const ROWS_MAX = 500;
/** Webhooks looked at in one transaction: some milliseconds when each has as many deliveries as are kept. */
const WEBHOOKS_MAX = 20;

/**
 * What is older than it is kept, by kind. A delivery that is not settled is kept however old, and so is an event that
 * waits for its block time, by its deliveries.
 */
export const OLD = {
  answers: `
    UPDATE attempts SET answer_body = NULL WHERE (delivery_id, n) IN
      (SELECT delivery_id, n FROM attempts WHERE answer_body IS NOT NULL AND started_at_ms < ? LIMIT ${ROWS_MAX})`,
  deliveries: `
    DELETE FROM deliveries WHERE id IN
      (SELECT id FROM deliveries WHERE created_at_ms < ? AND ${SETTLED} LIMIT ${ROWS_MAX})`,
  deliveriesOfDeleted: `
    DELETE FROM deliveries WHERE id IN (SELECT d.id FROM webhooks w CROSS JOIN deliveries d ON d.webhook_id = w.id
      WHERE w.deleted_at_ms < ? AND ${SETTLED} LIMIT ${ROWS_MAX})`,
  events: `
    DELETE FROM events WHERE id IN (SELECT id FROM events e WHERE created_at_ms < ?
      AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id) LIMIT ${ROWS_MAX})`,
  webhooks: `
    DELETE FROM webhooks WHERE id IN (SELECT id FROM webhooks w WHERE deleted_at_ms < ?
      AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = w.id) LIMIT ${ROWS_MAX})`,
  idempotencyKeys: `
    DELETE FROM webhook_idempotency WHERE (account_id, key_hash) IN
      (SELECT account_id, key_hash FROM webhook_idempotency WHERE created_at_ms < ? LIMIT ${ROWS_MAX})`,
} as const;

/**
 * Forgets what is older than it is kept, and of each webhook what is beyond the number that is; a portion at a time,
 * each a transaction of its own. `true` while there is more.
 */
export function createPrune(store: Store): (nowMs: number) => boolean {
  const old = [
    { statement: store.prepare(OLD.answers), keptMs: ANSWERS_KEPT_MS },
    { statement: store.prepare(OLD.deliveries), keptMs: DELIVERIES_KEPT_MS },
    { statement: store.prepare(OLD.deliveriesOfDeleted), keptMs: DELETED_KEPT_MS },
    { statement: store.prepare(OLD.events), keptMs: DELIVERIES_KEPT_MS },
    { statement: store.prepare(OLD.webhooks), keptMs: DELETED_KEPT_MS },
    { statement: store.prepare(OLD.idempotencyKeys), keptMs: IDEMPOTENCY_KEPT_MS },
  ];
  const following = store.prepare<{ id: string }, [string]>(
    `SELECT id FROM webhooks WHERE id > ? ORDER BY id LIMIT ${WEBHOOKS_MAX}`,
  );
  const trim = createTrim(store);
  /** The webhooks up to this one have been looked at, in this round. */
  let done = '';

  function trimSome(): boolean {
    for (const { id } of following.all(done)) {
      if (trim(id) > 0) return true;
      done = id;
    }
    const isMore = following.get(done) !== null;
    if (!isMore) done = '';
    return isMore;
  }

  const prune = store.transaction(
    (nowMs: number) =>
      old.some(({ statement, keptMs }) => statement.run(nowMs - keptMs).changes > 0) || trimSome(),
  );
  return (nowMs) => prune.immediate(nowMs);
}
