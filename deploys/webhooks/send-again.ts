import type { Store } from '../../shared/store/open.ts';
import type { By } from '../accounts/audit.ts';
import type { Enqueue } from '../outbox/enqueue.ts';
import type { AttemptRow, createList, DeliveryRow, Page } from '../outbox/list.ts';
import type { DeliveryState } from '../outbox/outcome.ts';
import { createPruneWebhook } from '../outbox/prune.ts';
import { changing, type NoWebhook, type WebhookDeps } from './webhook.ts';

export type Tested =
  | Readonly<{ kind: 'queued'; deliveryId: string } | { kind: 'webhook-paused' }>
  /** More tests than a webhook takes in a minute; a test after exactly that wait is queued. */
  | Readonly<{ kind: 'over-rate'; retryAfterSeconds: number }>
  | NoWebhook;
export type AllResent =
  Readonly<{ kind: 'due'; deliveries: number } | { kind: 'webhook-paused' }> | NoWebhook;
export type Delivery = DeliveryRow & Readonly<{ body: Uint8Array | null; tries: readonly AttemptRow[] }>;

/** Deliveries of an account's webhooks: looking at them, and sending on request. `wake` tells the worker of what is due now. */
export function createSendAgain(
  deps: WebhookDeps,
  { ping }: Pick<Enqueue, 'ping'>,
  list: ReturnType<typeof createList>,
  wake: () => void,
) {
  const { store, rows, clock } = deps;
  const { resend, resendFailed, countFailed } = createResend(store);
  const [waitSeconds, pruneWebhook] = [createRecentTests(store), createPruneWebhook(store)];

  const test = changing(deps, ({ webhook, nowMs, note }): Tested => {
    // It would be recorded as skipped, which is no answer to who asks for a test.
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    const retryAfterSeconds = waitSeconds(webhook.id, nowMs);
    if (retryAfterSeconds > 0) return { kind: 'over-rate', retryAfterSeconds };
    const pinged = ping(webhook.id, nowMs);
    if (pinged.kind === 'no-webhook') return pinged;
    const { deliveryId } = pinged;
    // Here and not only once a day, or a day's tests would gather.
    pruneWebhook(webhook.id);
    note('webhook.test', { deliveryId });
    return { kind: 'queued', deliveryId };
  });

  const one = changing(deps, ({ webhook, nowMs, note }, deliveryId: string): Resent => {
    if (list.find(deliveryId)?.webhookId !== webhook.id) return { kind: 'no-delivery' };
    const resent = resend(deliveryId, nowMs);
    if (resent.kind === 'due') note('webhook.resend', { deliveryId });
    return resent;
  });

  const failed = changing(deps, ({ webhook, nowMs, note }, sinceMs: number): AllResent => {
    if (webhook.pausedAtMs !== null) return { kind: 'webhook-paused' };
    const deliveries = resendFailed(webhook.id, sinceMs, nowMs);
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
    /** One more attempt of a delivery: the same id and body, one try. */
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
      rows.find(accountId, id, clock.now()) === undefined ? 0 : countFailed(id, sinceMs),
    /** Newest first; `undefined` when there is no such webhook. */
    deliveries: (accountId: number, page: Page): DeliveryRow[] | undefined =>
      rows.find(accountId, page.webhookId, clock.now()) && list.list(page),
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
