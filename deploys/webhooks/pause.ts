import { createWithdraw } from '../outbox/withdraw.ts';
import type { WebhookDeps } from './webhook-deps.ts';
import { NO_WEBHOOK, type NoWebhook, type Webhook } from './webhook.ts';

export type Toggled = Readonly<{ kind: 'paused' | 'resumed'; webhook: Webhook }> | NoWebhook;

/** Pausing and resuming. Both may be asked for again: the first time counts. */
export function createPause({ store, rows, clock }: WebhookDeps) {
  const withdraw = createWithdraw(store);
  const stop = store.prepare('UPDATE webhooks SET paused_at_ms = ?1, updated_at_ms = ?1 WHERE id = ?2');
  const go = store.prepare('UPDATE webhooks SET paused_at_ms = NULL, updated_at_ms = ?1 WHERE id = ?2');

  const toggle = store.transaction((accountId: number, id: string, isPause: boolean): Toggled => {
    const nowMs = clock.now();
    const before = rows.find(accountId, id, nowMs);
    if (before === undefined) return NO_WEBHOOK;
    const isPaused = before.pausedAtMs !== null;
    if (isPaused !== isPause) (isPause ? stop : go).run(nowMs, id);
    if (isPause && !isPaused) withdraw(id, 'skipped', nowMs);
    const webhook = rows.find(accountId, id, nowMs) ?? before;
    return { kind: isPause ? 'paused' : 'resumed', webhook };
  });

  return {
    /** Open deliveries become `skipped`, as do all that come until it is resumed; an attempt under way ends. */
    pause: (accountId: number, id: string): Toggled => toggle.immediate(accountId, id, true),
    /** What was skipped stays so, and can be resent one by one. */
    resume: (accountId: number, id: string): Toggled => toggle.immediate(accountId, id, false),
  };
}
