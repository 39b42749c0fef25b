import type { By } from '../audit/actor.ts';
import type { Enqueue } from '../outbox/enqueue.ts';
import type { AttemptRow, createList, DeliveryRow, Page } from '../outbox/list.ts';
import { createRecentTests } from '../outbox/recent-tests.ts';
import { createResend, type Resent } from '../outbox/resend.ts';
import { createTrim } from '../outbox/trim.ts';
import type { WebhookDeps } from './webhook-deps.ts';
import { NO_WEBHOOK, type NoWebhook } from './webhook.ts';

export type Tested =
  | Readonly<{ kind: 'queued'; deliveryId: string } | { kind: 'webhook-paused' }>
  /** More tests than a webhook takes in a minute; a test after exactly that wait is queued. */
  | Readonly<{ kind: 'over-rate'; retryAfterSeconds: number }>
  | NoWebhook;
export type AllResent =
  Readonly<{ kind: 'due'; deliveries: number } | { kind: 'webhook-paused' }> | NoWebhook;
export type Delivery = DeliveryRow & Readonly<{ body: Uint8Array | null; tries: readonly AttemptRow[] }>;

type Deps = WebhookDeps &
  Readonly<{
    enqueue: Pick<Enqueue, 'ping'>;
    list: ReturnType<typeof createList>;
    /** Tells the worker of what is due now. */
    wake(): void;
  }>;

/** Deliveries of an account's webhooks: looking at them, and sending on request. */
export function createSendAgain({ store, rows, clock, audit, enqueue, list, wake }: Deps) {
  const { resend, resendFailed, countFailed } = createResend(store);
  const [waitSeconds, trim] = [createRecentTests(store), createTrim(store)];

  const test = store.transaction(({ accountId, actor }: By, id: string): Tested => {
    const atMs = clock.now();
    const webhook = rows.find(accountId, id, atMs);
    if (webhook === undefined) return NO_WEBHOOK;
    // It would be recorded as skipped, which is no answer to who asks for a test.
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    const retryAfterSeconds = waitSeconds(id, atMs);
    if (retryAfterSeconds > 0) return { kind: 'over-rate', retryAfterSeconds };
    const pinged = enqueue.ping(id, atMs);
    if (pinged.kind === 'no-webhook') return NO_WEBHOOK;
    const { deliveryId } = pinged;
    // Here and not only once a day, or a day's tests would gather.
    trim(id);
    audit.note({ atMs, actor, action: 'webhook.test', accountId, subject: id, detail: { deliveryId } });
    return { kind: 'queued', deliveryId };
  });

  function findDelivery(accountId: number, id: string, deliveryId: string) {
    if (rows.find(accountId, id, clock.now()) === undefined) return undefined;
    const delivery = list.find(deliveryId);
    return delivery?.webhookId === id ? delivery : undefined;
  }

  const one = store.transaction(({ accountId, actor }: By, id: string, deliveryId: string): Resent => {
    if (findDelivery(accountId, id, deliveryId) === undefined) return { kind: 'no-delivery' };
    const atMs = clock.now();
    const resent = resend(deliveryId, atMs);
    const detail = { deliveryId };
    if (resent.kind === 'due')
      audit.note({ atMs, actor, action: 'webhook.resend', accountId, subject: id, detail });
    return resent;
  });

  const failed = store.transaction(({ accountId, actor }: By, id: string, sinceMs: number): AllResent => {
    const atMs = clock.now();
    const webhook = rows.find(accountId, id, atMs);
    if (webhook === undefined) return NO_WEBHOOK;
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    const deliveries = resendFailed(id, sinceMs, atMs);
    const detail = { sinceMs, deliveries };
    if (deliveries > 0)
      audit.note({ atMs, actor, action: 'webhook.resend-failed', accountId, subject: id, detail });
    return { kind: 'due', deliveries };
  });

  /** The worker hears of rows once they can be read. */
  function woken<T extends Readonly<{ kind: string }>>(outcome: T, isNew: boolean): T {
    if (isNew) wake();
    return outcome;
  }

  return {
    /** Sends a `ping` through the queue, as any event is. */
    sendTest: (by: By, id: string): Tested => {
      const tested = test.immediate(by, id);
      return woken(tested, tested.kind === 'queued');
    },
    /** One more attempt of a delivery: the same id and body, one try. */
    resendOne: (by: By, id: string, deliveryId: string): Resent => {
      const resent = one.immediate(by, id, deliveryId);
      return woken(resent, resent.kind === 'due');
    },
    /** One more attempt of each failed delivery that was made at `sinceMs` or later. */
    resendAllFailed: (by: By, id: string, sinceMs: number): AllResent => {
      const resent = failed.immediate(by, id, sinceMs);
      return woken(resent, resent.kind === 'due' && resent.deliveries > 0);
    },
    /** How many `resendAllFailed` would send; none while the webhook is paused. */
    failedSince: (accountId: number, id: string, sinceMs: number): number =>
      rows.find(accountId, id, clock.now()) === undefined ? 0 : countFailed(id, sinceMs),
    /** Newest first; `undefined` when there is no such webhook. */
    deliveries: (accountId: number, page: Page): DeliveryRow[] | undefined =>
      rows.find(accountId, page.webhookId, clock.now()) && list.list(page),
    delivery: (accountId: number, id: string, deliveryId: string): Delivery | undefined => {
      const found = findDelivery(accountId, id, deliveryId);
      return found && { ...found, tries: list.attemptsOf(deliveryId) };
    },
  };
}
