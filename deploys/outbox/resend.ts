import type { Store } from '../../shared/store/open.ts';
import type { DeliveryState } from './after-attempt.ts';

export type Resent =
  | { readonly kind: 'due' }
  /** One asked for before is still waiting for its attempt. */
  | { readonly kind: 'already-due' }
  | { readonly kind: 'no-delivery' }
  /** It waits for its first attempt, or one is being made. */
  | { readonly kind: 'not-yet'; readonly state: DeliveryState }
  /** It was attempted as often as it may be. */
  | { readonly kind: 'worn-out' }
  | { readonly kind: 'webhook-paused' | 'webhook-deleted' };

/** Attempts of a delivery in all, those asked for by hand included: each may keep 16 KiB of an answer. */
export const ATTEMPTS_EVER_MAX = 20;

/** Failed deliveries of the webhook ?1 that were made since ?2. */
const RESENDABLE = `
  webhook_id = (SELECT id FROM webhooks WHERE id = ?1 AND paused_at_ms IS NULL AND deleted_at_ms IS NULL)
    AND created_at_ms >= ?2 AND state = 'failed' AND resend_at_ms IS NULL AND lease_token IS NULL
    AND (SELECT max(n) FROM attempts WHERE delivery_id = deliveries.id) < ${ATTEMPTS_EVER_MAX}`;

type Row = {
  state: DeliveryState;
  is_waiting: number;
  is_under_way: number;
  is_paused: number;
  is_deleted: number;
  attempts_ever: number;
};

/** Makes an attempt by hand due at once: the same id and body, one try, the automatic schedule untouched. */
export function createResend(store: Store) {
  const find = store.prepare<Row, [string]>(`
    SELECT d.state, d.resend_at_ms IS NOT NULL AS is_waiting,
      d.lease_token IS NOT NULL OR d.body IS NULL AS is_under_way,
      w.paused_at_ms IS NOT NULL AS is_paused, w.deleted_at_ms IS NOT NULL AS is_deleted,
      (SELECT coalesce(max(n), 0) FROM attempts WHERE delivery_id = d.id) AS attempts_ever
    FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.id = ?`);
  const arm = store.prepare('UPDATE deliveries SET resend_at_ms = ? WHERE id = ?');
  const armFailed = store.prepare(`UPDATE deliveries SET resend_at_ms = ?3 WHERE ${RESENDABLE}`);
  const countFailed = store.prepare<{ n: number }, [string, number]>(
    `SELECT count(*) AS n FROM deliveries WHERE ${RESENDABLE}`,
  );

  const resend = store.transaction((deliveryId: string, nowMs: number): Resent => {
    const row = find.get(deliveryId);
    if (!row) return { kind: 'no-delivery' };
    if (row.is_deleted === 1) return { kind: 'webhook-deleted' };
    if (row.is_paused === 1) return { kind: 'webhook-paused' };
    if (row.is_waiting === 1) return { kind: 'already-due' };
    if (row.is_under_way === 1 || row.state === 'queued') return { kind: 'not-yet', state: row.state };
    if (row.attempts_ever >= ATTEMPTS_EVER_MAX) return { kind: 'worn-out' };
    arm.run(nowMs, deliveryId);
    return { kind: 'due' };
  });

  return {
    resend: (deliveryId: string, nowMs: number): Resent => resend.immediate(deliveryId, nowMs),
    /** Resends every failed delivery of a webhook that was made since `sinceMs`; gives how many. */
    resendFailed: (webhookId: string, sinceMs: number, nowMs: number): number =>
      armFailed.run(webhookId, sinceMs, nowMs).changes,
    /** How many `resendFailed` would resend now. */
    countFailed: (webhookId: string, sinceMs: number): number => countFailed.get(webhookId, sinceMs)?.n ?? 0,
  };
}
