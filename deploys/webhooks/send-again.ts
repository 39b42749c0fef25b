import type { Store } from '../../shared/store/open.ts';
import type { By } from '../accounts/audit.ts';
import type { Enqueue } from '../outbox/enqueue.ts';
import {
  createAccountDeliveries,
  type Delivery,
  type DeliveryFilter,
  type DeliveryRow,
} from '../outbox/list.ts';
import type { DeliveryState } from '../outbox/delivery-state.ts';
import { createPruneWebhook } from '../outbox/prune.ts';
import { changing, type NoWebhook, type WebhookDeps } from './webhook.ts';

export type Tested =
  | Readonly<{ kind: 'queued'; deliveryId: string } | { kind: 'webhook-paused' }>
  /** Too many tests within a minute; one after exactly that wait is queued. */
  | Readonly<{ kind: 'over-rate'; retryAfterSeconds: number }>
  | NoWebhook;
type AllResent = Readonly<{ kind: 'due'; deliveries: number } | { kind: 'webhook-paused' }> | NoWebhook;

export type WebhookFilter = DeliveryFilter & Readonly<{ webhookId: string }>;

/** Reads deliveries, and sends on request. `wake` tells the worker that something is due now. */
export function createSendAgain(deps: WebhookDeps, { ping }: Pick<Enqueue, 'ping'>, wake: () => void) {
  const { store, rows, clock } = deps;
  const { page, find: findDelivery } = createAccountDeliveries(store);
  const find = store.prepare<FailedDeliveryRow, [string, string]>(`
    SELECT state, resend_at_ms IS NOT NULL AS isWaiting, lease_token IS NOT NULL OR body IS NULL AS isUnderWay,
      (SELECT max(n) FROM attempts WHERE delivery_id = id) AS attemptsEver
    FROM deliveries WHERE id = ? AND webhook_id = ?`);
  const arm = store.prepare('UPDATE deliveries SET resend_at_ms = ? WHERE id = ?');
  const armFailed = store.prepare(`UPDATE deliveries SET resend_at_ms = ?3 WHERE ${RESENDABLE}`);
  const countFailed = store.prepare<{ n: number }, [string, number]>(`
    SELECT count(*) AS n FROM deliveries WHERE ${RESENDABLE}`);
  const [waitSeconds, pruneWebhook] = [createRecentTests(store), createPruneWebhook(store)];

  const test = changing(deps, ({ webhook, nowMs, note }): Tested => {
    // It would only be recorded as skipped.
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    const retryAfterSeconds = waitSeconds(webhook.id, nowMs);
    if (retryAfterSeconds > 0) return { kind: 'over-rate', retryAfterSeconds };
    const deliveryId = ping(webhook.id, nowMs);
    // Not only once a day, or a day's tests would pile up.
    pruneWebhook(webhook.id);
    note('webhook.test', { deliveryId });
    return { kind: 'queued', deliveryId };
  });

  const one = changing(deps, ({ webhook, nowMs, note }, deliveryId: string): Resent => {
    const row = find.get(deliveryId, webhook.id);
    if (row === null) return { kind: 'no-delivery' };
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    if (row.isWaiting === 1) return { kind: 'already-due' };
    if (row.isUnderWay === 1 || row.state === 'queued') return { kind: 'not-yet', state: row.state };
    if ((row.attemptsEver ?? 0) >= ATTEMPTS_EVER_MAX) return { kind: 'worn-out' };
    arm.run(nowMs, deliveryId);
    note('webhook.resend', { deliveryId });
    return { kind: 'due' };
  });

  const failed = changing(deps, ({ webhook, nowMs, note }, sinceMs: number): AllResent => {
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    const deliveries = armFailed.run(webhook.id, sinceMs, nowMs).changes;
    if (deliveries > 0) note('webhook.resend-failed', { sinceMs, deliveries });
    return { kind: 'due', deliveries };
  });

  /** Wakes the worker, after the commit of what made something due. */
  function woken<Outcome extends Readonly<{ kind: string; deliveries?: number }>>(outcome: Outcome): Outcome {
    if (outcome.kind === 'queued' || (outcome.kind === 'due' && outcome.deliveries !== 0)) wake();
    return outcome;
  }

  return {
    /** Sends a `ping` through the queue, as any event is. */
    sendTest: (by: By, id: string): Tested => woken(test(by, id)),
    /** One more attempt of a delivery, with the same id and body; the automatic schedule is unchanged. */
    resendOne: (by: By, id: string, deliveryId: string): Resent => {
      const resent = woken(one(by, id, deliveryId));
      return resent.kind === 'no-webhook' ? { kind: 'no-delivery' } : resent;
    },
    /** One more attempt of each failed delivery created at `sinceMs` or later. */
    resendAllFailed: (by: By, id: string, sinceMs: number): AllResent => woken(failed(by, id, sinceMs)),
    /** How many deliveries `resendAllFailed` would send; none while the webhook is paused. */
    failedSince: (accountId: number, id: string, sinceMs: number): number =>
      rows.find(accountId, id, clock.now()) === undefined ? 0 : (countFailed.get(id, sinceMs)?.n ?? 0),
    /** Newest first; `undefined` when there is no such webhook. */
    deliveries(accountId: number, filter: WebhookFilter): readonly DeliveryRow[] | undefined {
      if (rows.find(accountId, filter.webhookId, clock.now()) === undefined) return undefined;
      const found: DeliveryRow[] = [];
      for (let { after } = filter; ;) {
        const limit = filter.limit - found.length;
        const { rows: more, next } = page(accountId, { ...filter, ...(after && { after }), limit });
        found.push(...more);
        if (next === undefined || found.length === filter.limit) return found;
        after = next;
      }
    },
    delivery(accountId: number, id: string, deliveryId: string): Delivery | undefined {
      const found = findDelivery(accountId, deliveryId);
      return found?.webhookId === id ? found : undefined;
    },
  };
}

export type Resent =
  | { readonly kind: 'due' }
  /** An earlier request still waits for its attempt. */
  | { readonly kind: 'already-due' }
  | { readonly kind: 'no-delivery' }
  /** It waits for its first attempt, or is being attempted. */
  | { readonly kind: 'not-yet'; readonly state: DeliveryState }
  /** It had `ATTEMPTS_EVER_MAX` attempts. */
  | { readonly kind: 'worn-out' }
  | { readonly kind: 'webhook-paused' };

type FailedDeliveryRow = Readonly<{
  state: DeliveryState;
  isWaiting: number;
  isUnderWay: number;
  attemptsEver: number | null;
}>;

/** Attempts of a delivery, automatic and manual: each may keep 16 KiB of an answer. */
export const ATTEMPTS_EVER_MAX = 20;

/** Failed deliveries of the webhook ?1 that were created since ?2. */
const RESENDABLE = `
  webhook_id = (SELECT id FROM webhooks WHERE id = ?1 AND paused_at_ms IS NULL AND deleted_at_ms IS NULL)
    AND created_at_ms >= ?2 AND state = 'failed' AND resend_at_ms IS NULL AND lease_token IS NULL
    AND (SELECT max(n) FROM attempts WHERE delivery_id = deliveries.id) < ${ATTEMPTS_EVER_MAX}`;

const TESTS_MAX = 10;
const WINDOW_MS = 60_000;

/** Seconds until a webhook's next test, from 0 to 60. To be called in the transaction that adds it. */
function createRecentTests(store: Store): (webhookId: string, nowMs: number) => number {
  const nthLast = store.prepare<{ at: number }, [string, number]>(`
    SELECT created_at_ms AS at FROM deliveries
    WHERE webhook_id = ?1 AND created_at_ms > ?2 AND event_kind = 'ping'
    ORDER BY created_at_ms DESC LIMIT 1 OFFSET ${TESTS_MAX - 1}`);
  return function waitSeconds(webhookId, nowMs) {
    const row = nthLast.get(webhookId, nowMs - WINDOW_MS);
    // Not longer after the wall clock was set back.
    return row === null ? 0 : Math.ceil(Math.min(WINDOW_MS, row.at + WINDOW_MS - nowMs) / 1_000);
  };
}
