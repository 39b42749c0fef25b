import type { By } from '../audit/actor.ts';
import { createWithdraw } from '../outbox/withdraw.ts';
import type { WebhookDeps } from './webhook-deps.ts';
import { NO_WEBHOOK, type NoWebhook } from './webhook.ts';

export type Removed = Readonly<{ kind: 'removed' }> | NoWebhook;

/** Deletes a webhook, cancels its open deliveries and forgets its secrets, all at once. */
export function createRemove({ store, rows, clock, audit }: WebhookDeps) {
  const withdraw = createWithdraw(store);
  // Nothing to keep a row for; otherwise making and deleting webhooks would fill the table for months.
  const drop = store.prepare(
    'DELETE FROM webhooks WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE webhook_id = ?1)',
  );
  const bury = store.prepare(`
    UPDATE webhooks SET deleted_at_ms = ?1, updated_at_ms = ?1, secret_ct = x'', next_secret_ct = NULL,
      next_secret_kid = NULL, next_secret_at_ms = NULL WHERE id = ?2`);

  const remove = store.transaction(({ accountId, actor }: By, id: string): Removed => {
    const nowMs = clock.now();
    if (rows.find(accountId, id, nowMs) === undefined) return NO_WEBHOOK;
    withdraw(id, 'cancelled', nowMs);
    audit.note({ atMs: nowMs, actor, action: 'webhook.delete', accountId, subject: id });
    if (drop.run(id).changes === 0) bury.run(nowMs, id);
    return { kind: 'removed' };
  });
  return (by: By, id: string): Removed => remove.immediate(by, id);
}
