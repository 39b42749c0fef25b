import type { Store } from '../../shared/store/open.ts';

/**
 * Takes back what a webhook that is deleted (`cancelled`) or paused (`skipped`) would still be sent. An attempt under
 * way goes on to its end. To be called in the transaction that deletes or pauses it. Gives how many were taken back.
 */
export function createWithdraw(store: Store) {
  const close = store.prepare(`
    UPDATE deliveries SET state = ?1, last_error = ?2, next_attempt_at_ms = NULL, finished_at_ms = ?3
    WHERE webhook_id = ?4 AND finished_at_ms IS NULL AND state != 'attempting'`);
  const forget = store.prepare(
    'UPDATE deliveries SET resend_at_ms = NULL WHERE webhook_id = ? AND resend_at_ms IS NOT NULL',
  );
  return function withdraw(webhookId: string, to: 'cancelled' | 'skipped', nowMs: number): number {
    const { changes } = close.run(to, to === 'cancelled' ? 'deleted' : 'paused', nowMs, webhookId);
    forget.run(webhookId);
    return changes;
  };
}
