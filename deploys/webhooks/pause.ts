import type { By } from '../audit/actor.ts';
import { createWithdraw } from '../outbox/withdraw.ts';
import type { WebhookDeps } from './webhook-deps.ts';
import { NO_WEBHOOK, type NoWebhook, type Webhook } from './webhook.ts';

export type Toggled = Readonly<{ kind: 'paused' | 'resumed'; webhook: Webhook }> | NoWebhook;

/** Pausing and resuming. Both may be asked for again: the first time counts. */
export function createPause({ store, rows, clock, audit }: WebhookDeps) {
  const withdraw = createWithdraw(store);
  const stop = store.prepare('UPDATE webhooks SET paused_at_ms = ?1, updated_at_ms = ?1 WHERE id = ?2');
  const go = store.prepare('UPDATE webhooks SET paused_at_ms = NULL, updated_at_ms = ?1 WHERE id = ?2');

  const toggle = store.transaction(({ accountId, actor }: By, id: string, isPause: boolean): Toggled => {
    const nowMs = clock.now();
    const before = rows.find(accountId, id, nowMs);
    if (before === undefined) return NO_WEBHOOK;
    const isPaused = before.pausedAtMs !== null;
    if (isPaused !== isPause) {
      (isPause ? stop : go).run(nowMs, id);
      if (isPause) withdraw(id, 'skipped', nowMs);
      const action = isPause ? 'webhook.pause' : 'webhook.resume';
      audit.note({ atMs: nowMs, actor, action, accountId, subject: id });
    }
    const webhook = rows.find(accountId, id, nowMs) ?? before;
    return { kind: isPause ? 'paused' : 'resumed', webhook };
  });

  return {
    /** Open deliveries become `skipped`, as do all that come until it is resumed; an attempt under way ends. */
    pause: (by: By, id: string): Toggled => toggle.immediate(by, id, true),
    /** What was skipped stays so, and can be resent one by one. */
    resume: (by: By, id: string): Toggled => toggle.immediate(by, id, false),
  };
}
