import type { Enqueue } from '../outbox/enqueue.ts';
import type { AttemptRow, createList, DeliveryRow, Page } from '../outbox/list.ts';
import { createResend, type Resent } from '../outbox/resend.ts';
import type { WebhookDeps } from './webhook-deps.ts';
import { NO_WEBHOOK, type NoWebhook } from './webhook.ts';

export type Tested =
  Readonly<{ kind: 'queued'; deliveryId: string } | { kind: 'webhook-paused' }> | NoWebhook;
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
export function createSendAgain({ store, rows, clock, enqueue, list, wake }: Deps) {
  const { resend, resendFailed } = createResend(store);

  /** Sends a `ping` through the queue, as any event is. */
  function sendTest(accountId: number, id: string): Tested {
    const nowMs = clock.now();
    const webhook = rows.find(accountId, id, nowMs);
    if (webhook === undefined) return NO_WEBHOOK;
    // It would be recorded as skipped, which is no answer to who asks for a test.
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    const pinged = enqueue.ping(id, nowMs);
    if (pinged.kind === 'no-webhook') return NO_WEBHOOK;
    wake();
    return { kind: 'queued', deliveryId: pinged.deliveryId };
  }

  function findDelivery(accountId: number, id: string, deliveryId: string) {
    if (rows.find(accountId, id, clock.now()) === undefined) return undefined;
    const delivery = list.find(deliveryId);
    return delivery?.webhookId === id ? delivery : undefined;
  }

  /** One more attempt of a delivery: the same id and body, one try. */
  function resendOne(accountId: number, id: string, deliveryId: string): Resent {
    if (findDelivery(accountId, id, deliveryId) === undefined) return { kind: 'no-delivery' };
    const resent = resend(deliveryId, clock.now());
    if (resent.kind === 'due') wake();
    return resent;
  }

  /** One more attempt of each failed delivery that was made at `sinceMs` or later. */
  function resendAllFailed(accountId: number, id: string, sinceMs: number): AllResent {
    const nowMs = clock.now();
    const webhook = rows.find(accountId, id, nowMs);
    if (webhook === undefined) return NO_WEBHOOK;
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    const deliveries = resendFailed(id, sinceMs, nowMs);
    if (deliveries > 0) wake();
    return { kind: 'due', deliveries };
  }

  return {
    sendTest,
    resendOne,
    resendAllFailed,
    /** Newest first; `undefined` when there is no such webhook. */
    deliveries: (accountId: number, page: Page): DeliveryRow[] | undefined =>
      rows.find(accountId, page.webhookId, clock.now()) && list.list(page),
    delivery: (accountId: number, id: string, deliveryId: string): Delivery | undefined => {
      const found = findDelivery(accountId, id, deliveryId);
      return found && { ...found, tries: list.attemptsOf(deliveryId) };
    },
  };
}
