import type { Store } from '../../shared/store/open.ts';
import type { DeliveryState } from '../outbox/delivery-state.ts';

type LastDelivery = Readonly<{
  id: string;
  state: DeliveryState;
  atMs: number;
  status: number | null;
  error: string | null;
}>;

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
const WEEK_HOURS = 7 * DAY_HOURS;
const ATTEMPTS = 200;

type DeliveryHourRow = Readonly<{ hour: number; state: DeliveryState; n: number }>;

/** The deliveries of a webhook, by the time at which they were created. The caller checks that it is the account's. */
export function createWebhookHealth(store: Store) {
  const times = store.prepare<{ ms: number }, [string, number]>(`
    SELECT phases_json ->> '$.totalMs' AS ms FROM
      (SELECT id FROM deliveries WHERE webhook_id = ? AND created_at_ms >= ? ORDER BY created_at_ms DESC, id LIMIT ${ATTEMPTS})
      CROSS JOIN attempts ON delivery_id = id WHERE attempts.status IS NOT NULL LIMIT ${ATTEMPTS}`);
  const newest = store.prepare<LastDelivery, [string]>(`
    SELECT id, state, created_at_ms AS atMs, last_status AS status, last_error AS error
    FROM deliveries WHERE webhook_id = ? ORDER BY created_at_ms DESC, id LIMIT 1`);
  const byHour = store.prepare<DeliveryHourRow, [string, number]>(`
    SELECT created_at_ms / ${HOUR_MS} AS hour, state, count(*) AS n
    FROM deliveries WHERE webhook_id = ? AND created_at_ms >= ? GROUP BY hour, state`);

  function read(webhookId: string, nowMs: number, hoursBack: number) {
    const now = Math.floor(nowMs / HOUR_MS);
    const fromMs = (now - hoursBack + 1) * HOUR_MS;
    const rows = byHour.all(webhookId, fromMs).filter(({ hour }) => hour > now - hoursBack);
    return {
      rows,
      fromMs,
      last: newest.get(webhookId) ?? undefined,
      /** The last 24 hours, oldest first; the last one is the current one. */
      hours: Array.from({ length: DAY_HOURS }, (_, i) =>
        countsOf(rows.filter(({ hour }) => hour === now - DAY_HOURS + 1 + i)),
      ),
      day: countsOf(rows.filter(({ hour }) => hour > now - DAY_HOURS)),
    };
  }

  return {
    healthOf(webhookId: string, nowMs: number) {
      const { rows, fromMs, ...day } = read(webhookId, nowMs, WEEK_HOURS);
      const tookMs = times.all(webhookId, fromMs).map(({ ms }) => ms);
      return { ...day, week: countsOf(rows), latency: latencyOf(tookMs) };
    },
    /** The last 24 hours, for a list of webhooks: from an index alone, however long the bodies are. */
    dayOf(webhookId: string, nowMs: number) {
      const { last, hours, day } = read(webhookId, nowMs, DAY_HOURS);
      return { last, hours, day };
    },
  };
}

type WebhookHealthReader = ReturnType<typeof createWebhookHealth>;
export type WebhookHealth = ReturnType<WebhookHealthReader['healthOf']>;
export type WebhookDay = ReturnType<WebhookHealthReader['dayOf']>;
export type DeliveryCounts = ReturnType<typeof countsOf>;

/** Deliveries created in some time, by state. `waiting`: they wait for an attempt or are in one. */
function countsOf(rows: readonly DeliveryHourRow[]) {
  const sumOf = (...states: readonly DeliveryState[]) =>
    rows.reduce((sum, { state, n }) => (states.includes(state) ? sum + n : sum), 0);
  return {
    delivered: sumOf('delivered'),
    failed: sumOf('failed'),
    waiting: sumOf('queued', 'attempting', 'retry_scheduled'),
    skipped: sumOf('skipped', 'cancelled'),
  };
}

/** Duration of answered attempts, of the last `ATTEMPTS` of the week; `undefined` if there is none. */
function latencyOf(times: readonly number[]) {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0);
  return sorted.length === 0 ? undefined : { p50Ms: at(0.5), p95Ms: at(0.95) };
}

/** A webhook whose automatic attempts fail, for operators. Of its URL only the host is shown: the rest may be a secret. */
export type FailingWebhook = Readonly<{
  id: string;
  accountId: number;
  host: string;
  failingSinceMs: number;
  consecutiveFailures: number;
  lastSuccessAtMs: number | null;
  isPaused: boolean;
}>;

const LIMIT_MAX = 200;

type LastAttemptRow = Omit<FailingWebhook, 'isPaused'> & Readonly<{ isPaused: number }>;

/** Lists failing webhooks of all accounts after `after`, the longest failing first. */
export function createFailing(store: Store) {
  const page = store.prepare<LastAttemptRow, [number, string, number]>(`
    SELECT id, account_id AS accountId, host, failing_since_ms AS failingSinceMs,
      consecutive_failures AS consecutiveFailures, last_success_at_ms AS lastSuccessAtMs,
      paused_at_ms IS NOT NULL AS isPaused
    FROM webhooks WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL AND (failing_since_ms, id) > (?, ?)
    ORDER BY failing_since_ms, id LIMIT ?`);

  return function failing(
    limit: number,
    after: Pick<FailingWebhook, 'failingSinceMs' | 'id'> = { failingSinceMs: -1, id: '' },
  ): readonly FailingWebhook[] {
    const rows = page.all(after.failingSinceMs, after.id, Math.max(1, Math.min(limit, LIMIT_MAX)));
    return rows.map((row) => ({ ...row, isPaused: row.isPaused === 1 }));
  };
}
