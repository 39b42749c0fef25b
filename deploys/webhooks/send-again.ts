import type { Store } from '../../shared/store/open.ts';
import type { By } from '../accounts/audit.ts';
import type { Enqueue } from '../outbox/enqueue.ts';
import {
  type AttemptRow,
  createAccountDeliveries,
  createList,
  type DeliveryFilter,
  type DeliveryRow,
} from '../outbox/list.ts';
import type { DeliveryState } from '../outbox/outcome.ts';
import { createPruneWebhook } from '../outbox/prune.ts';
import { changing, type NoWebhook, type WebhookDeps } from './webhook.ts';

export type Tested =
  | Readonly<{ kind: 'queued'; deliveryId: string } | { kind: 'webhook-paused' }>
  /** More tests than a webhook takes in a minute; a test after exactly that wait is queued. */
  | Readonly<{ kind: 'over-rate'; retryAfterSeconds: number }>
  | NoWebhook;
type AllResent = Readonly<{ kind: 'due'; deliveries: number } | { kind: 'webhook-paused' }> | NoWebhook;
export type Delivery = DeliveryRow & Readonly<{ body: Uint8Array | null; tries: readonly AttemptRow[] }>;

/** Which deliveries of a webhook are wanted, 1 to 100. */
export type WebhookFilter = DeliveryFilter & Readonly<{ webhookId: string }>;

/** Deliveries of an account's webhooks: looking at them, and sending on request. `wake` tells the worker of what is due now. */
export function createSendAgain(deps: WebhookDeps, { ping }: Pick<Enqueue, 'ping'>, wake: () => void) {
  const { store, rows, clock } = deps;
  const [list, { page }] = [createList(store), createAccountDeliveries(store)];
  const find = store.prepare<Row, [string, string]>(`
    SELECT state, resend_at_ms IS NOT NULL AS isWaiting, lease_token IS NOT NULL OR body IS NULL AS isUnderWay,
      (SELECT max(n) FROM attempts WHERE delivery_id = id) AS attemptsEver
    FROM deliveries WHERE id = ? AND webhook_id = ?`);
  const arm = store.prepare('UPDATE deliveries SET resend_at_ms = ? WHERE id = ?');
  const armFailed = store.prepare(`UPDATE deliveries SET resend_at_ms = ?3 WHERE ${RESENDABLE}`);
  const countFailed = store.prepare<{ n: number }, [string, number]>(
    `SELECT count(*) AS n FROM deliveries WHERE ${RESENDABLE}`,
  );
  const [waitSeconds, pruneWebhook] = [createRecentTests(store), createPruneWebhook(store)];

  const test = changing(deps, ({ webhook, nowMs, note }): Tested => {
    // It would be recorded as skipped, which is no answer to who asks for a test.
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    const retryAfterSeconds = waitSeconds(webhook.id, nowMs);
    if (retryAfterSeconds > 0) return { kind: 'over-rate', retryAfterSeconds };
    const deliveryId = ping(webhook.id, nowMs);
    // Here and not only once a day, or a day's tests would gather.
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

  return {
    /** Sends a `ping` through the queue, as any event is. */
    sendTest: (by: By, id: string): Tested => {
      const tested = test(by, id);
      if (tested.kind === 'queued') wake(); // the worker hears of rows once they can be read
      return tested;
    },
    /** One more attempt of a delivery: the same id and body, one try, the automatic schedule untouched. */
    resendOne: (by: By, id: string, deliveryId: string): Resent => {
      const resent = one(by, id, deliveryId);
      if (resent.kind === 'due') wake();
      return resent.kind === 'no-webhook' ? { kind: 'no-delivery' } : resent;
    },
    /** One more attempt of each failed delivery that was made at `sinceMs` or later. */
    resendAllFailed: (by: By, id: string, sinceMs: number): AllResent => {
      const resent = failed(by, id, sinceMs);
      if (resent.kind === 'due' && resent.deliveries > 0) wake();
      return resent;
    },
    /** How many `resendAllFailed` would send; none while the webhook is paused. */
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
    delivery: (accountId: number, id: string, deliveryId: string): Delivery | undefined => {
      if (rows.find(accountId, id, clock.now()) === undefined) return undefined;
      const found = list.find(deliveryId);
      return found?.webhookId === id ? { ...found, tries: list.attemptsOf(deliveryId) } : undefined;
    },
  };
}

export type Resent =
  | { readonly kind: 'due' }
  /** One asked for before is still waiting for its attempt. */
  | { readonly kind: 'already-due' }
  | { readonly kind: 'no-delivery' }
  /** It waits for its first attempt, or one is being made. */
  | { readonly kind: 'not-yet'; readonly state: DeliveryState }
  /** It was attempted as often as it may be. */
  | { readonly kind: 'worn-out' }
  | { readonly kind: 'webhook-paused' };

type Row = Readonly<{
  state: DeliveryState;
  isWaiting: number;
  isUnderWay: number;
  attemptsEver: number | null;
}>;

/** Attempts of a delivery in all, those asked for by hand included: each may keep 16 KiB of an answer. */
export const ATTEMPTS_EVER_MAX = 20;

/** Failed deliveries of the webhook ?1 that were made since ?2. */
const RESENDABLE = `
  webhook_id = (SELECT id FROM webhooks WHERE id = ?1 AND paused_at_ms IS NULL AND deleted_at_ms IS NULL)
    AND created_at_ms >= ?2 AND state = 'failed' AND resend_at_ms IS NULL AND lease_token IS NULL
    AND (SELECT max(n) FROM attempts WHERE delivery_id = deliveries.id) < ${ATTEMPTS_EVER_MAX}`;

/** Tests that a webhook takes in any minute, whoever asks and however. */
const TESTS_MAX = 10;
const WINDOW_MS = 60_000;

/** Says how many seconds a webhook's next test must wait, from 0 to 60. To be called in the transaction that adds it. */
function createRecentTests(store: Store): (webhookId: string, nowMs: number) => number {
  const nthLast = store.prepare<{ at: number }, [string, number]>(`
    SELECT created_at_ms AS at FROM deliveries
    WHERE webhook_id = ?1 AND created_at_ms > ?2 AND event_kind = 'ping'
    ORDER BY created_at_ms DESC LIMIT 1 OFFSET ${TESTS_MAX - 1}`);
  return function waitSeconds(webhookId, nowMs) {
    const row = nthLast.get(webhookId, nowMs - WINDOW_MS);
    // A wall clock that was set back makes nobody wait for longer.
    return row === null ? 0 : Math.ceil(Math.min(WINDOW_MS, row.at + WINDOW_MS - nowMs) / 1_000);
  };
}
