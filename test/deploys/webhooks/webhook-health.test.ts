import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createWebhookHealth } from '../../../deploys/webhooks/webhook-health.ts';
import { explained } from '../explained.ts';
import { queueWith } from '../outbox/queue.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = 500_000 * HOUR_MS + 1_000;
let queue: ReturnType<typeof queueWith>;
let made: number;

beforeEach(() => {
  queue = queueWith('w', 'other');
  made = 0;
});
afterEach(() => queue[Symbol.dispose]());

/** A delivery that was made so many hours ago and stands like this; with `ms`, an attempt of it was answered then. */
function deliver(state: string, hoursAgo: number, ms?: number, webhookId = 'w') {
  const id = `d${String(made++).padStart(6, '0')}`;
  const atMs = NOW_MS - hoursAgo * HOUR_MS;
  const isOver = ['delivered', 'failed', 'skipped', 'cancelled'].includes(state);
  const [nextMs, endMs] = isOver ? [null, atMs] : [atMs, null];
  queue.store.run(
    `INSERT INTO deliveries (id, webhook_id, event_kind, dedupe_key, state, next_attempt_at_ms, last_status,
     created_at_ms, finished_at_ms) VALUES (?1, ?2, 'ping', ?1, ?3, ?4, ?5, ?6, ?7)`,
    [id, webhookId, state, nextMs, ms === undefined ? null : 200, atMs, endMs],
  );
  if (ms !== undefined)
    queue.store.run(
      `INSERT INTO attempts (delivery_id, n, trigger, state, url, started_at_ms, ended_at_ms, status, phases_json)
     VALUES (?, 1, 'manual', 'succeeded', 'https://x', ?2, ?2, 200, json_object('totalMs', ?3))`,
      [id, atMs, ms],
    );
  return id;
}
const health = () => createWebhookHealth(queue.store).healthOf('w', NOW_MS);
const counts = (given = {}) => ({ delivered: 0, failed: 0, waiting: 0, skipped: 0, ...given });

test('deliveries are counted by the hour they were made in, by how they stand, over 24 hours and 7 days', () => {
  for (const state of ['delivered', 'delivered', 'failed', 'queued', 'retry_scheduled', 'skipped'])
    deliver(state, 0);
  deliver('delivered', 23);
  deliver('failed', 24);
  deliver('cancelled', 167);
  deliver('delivered', 168);
  deliver('delivered', 0, undefined, 'other');
  const { hours, day, week } = health();
  const now = counts({ delivered: 2, failed: 1, waiting: 2, skipped: 1 });
  expect([hours.length, hours[0], hours.at(-1)]).toEqual([24, counts({ delivered: 1 }), now]);
  expect(day).toEqual({ ...now, delivered: 3 });
  expect(week).toEqual({ delivered: 3, failed: 2, waiting: 2, skipped: 2 });
});

test('latency is that of answered attempts of the week, the newest 200', () => {
  for (let i = 1; i <= 100; i++) deliver('delivered', 1, i);
  const silent = deliver('failed', 1, 9_999);
  queue.store.run('UPDATE attempts SET status = NULL WHERE delivery_id = ?', [silent]);
  deliver('delivered', 200, 9_999);
  deliver('delivered', 1, 9_999, 'other');
  expect(health().latency).toEqual({ p50Ms: 50, p95Ms: 95 });
  for (let i = 1; i <= 200; i++) deliver('delivered', 0, 7);
  expect(health().latency).toEqual({ p50Ms: 7, p95Ms: 7 });
});

test('the day alone equals that of the whole, from a covering index', () => {
  for (const [i, state] of ['delivered', 'failed', 'queued'].entries()) deliver(state, 12 * i, 5);
  const { last, hours, day } = health();
  expect(createWebhookHealth(queue.store).dayOf('w', NOW_MS)).toEqual({ last, hours, day });
  expect([day.delivered, day.failed]).toEqual([1, 1]);
  const found = explained(queue.store, createWebhookHealth).map(({ steps }) => steps.join());
  expect(found).toHaveLength(3);
  const byIndex =
    /^(?!.*SCAN (?!.*subquery)).*SEARCH deliveries USING (?:COVERING )?INDEX deliveries_recent \(webhook_id=\?/;
  for (const steps of found) expect(steps).toMatch(byIndex);
  expect(found[0]).toContain('SEARCH attempts USING PRIMARY KEY (delivery_id=?)');
  expect(found[2]).toMatch(/^SEARCH deliveries USING COVERING INDEX/);
});
