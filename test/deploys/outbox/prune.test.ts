import { describe, expect, test } from 'bun:test';
import { createPrune, DELIVERIES_KEPT, OLD, pruneRegularly } from '../../../deploys/outbox/prune.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { silentLog } from '../../started/gateway.ts';
import { startQueue, queueWith } from './queue.ts';

const DAY = 86_400_000;

function start() {
  const queue = startQueue();
  const prune = createPrune(queue.store);
  queue.addWebhook('one');
  queue.upgrade('A', 7);
  queue.end(queue.outbox.claim(START_MS, [])[0], answered(200, 'thanks'), START_MS);
  return {
    ...queue,
    prune: (nowMs: number) => {
      while (prune(nowMs));
    },
  };
}
const COUNTS = `SELECT (SELECT count(*) FROM webhooks), (SELECT count(*) FROM events), (SELECT count(*) FROM deliveries),
  (SELECT count(*) FROM attempts), (SELECT count(answer_body) FROM attempts)`;

describe('retention', () => {
  test.each([
    [30 * DAY, [1, 1, 1, 1, 1]],
    [30 * DAY + 1, [1, 1, 1, 1, 0]],
    [90 * DAY, [1, 1, 1, 1, 0]],
    [90 * DAY + 1, [1, 0, 0, 0, 0]],
  ])(
    'after %i ms keeps webhooks, events, deliveries, attempts and answers: %p (§6 deliveries kept)',
    (ageMs, counts) => {
      using queue = start();
      queue.prune(START_MS + ageMs);
      expect(queue.values(COUNTS)).toEqual([counts]);
    },
  );

  test('removes a deleted webhook a day later, with its deliveries', () => {
    using queue = start();
    queue.drop('one', START_MS + DAY);
    queue.prune(START_MS + 2 * DAY);
    expect(queue.values(COUNTS)).toEqual([[1, 1, 1, 1, 1]]);
    queue.prune(START_MS + 2 * DAY + 1);
    expect(queue.values(COUNTS)).toEqual([[0, 1, 0, 0, 0]]);
  });

  test('keeps a deleted webhook while it is being attempted', () => {
    using queue = start();
    queue.upgrade('B', 8);
    const [claim] = queue.outbox.claim(START_MS, []);
    queue.drop('one', START_MS);
    queue.prune(START_MS + 2 * DAY);
    expect(queue.end(claim, answered(500), START_MS + 2 * DAY)).toBe('recorded');
    expect(queue.states()).toEqual(['cancelled']);
    queue.prune(START_MS + 2 * DAY);
    expect(queue.values(COUNTS)).toEqual([[0, 2, 0, 0, 0]]);
  });
});

describe('retention by number', () => {
  /** Tests of a webhook a millisecond apart, all skipped because it is paused. */
  function skipped(queue: ReturnType<typeof startQueue>, id: string, count: number) {
    queue.pause(id);
    queue.store.transaction(() => {
      for (let i = 0; i < count; i++) queue.enqueue.ping(id, START_MS + i);
    })();
  }
  const createdOf = (queue: ReturnType<typeof startQueue>, id: string) =>
    queue.values(
      `SELECT count(*), min(created_at_ms), max(created_at_ms) FROM deliveries WHERE webhook_id = '${id}'`,
    );

  test('keeps the newest thousand of each webhook (§6 deliveries kept)', () => {
    using queue = startQueue();
    for (const [id, count] of Object.entries({ thousand: 1_000, many: 2_600 })) {
      queue.addWebhook(id);
      skipped(queue, id, count);
    }
    const prune = createPrune(queue.store);
    let portions = 0;
    while (prune(START_MS + DAY)) portions++;
    expect(portions).toBe(4);
    expect(createdOf(queue, 'thousand')).toEqual([[1_000, START_MS, START_MS + 999]]);
    expect(createdOf(queue, 'many')).toEqual([[DELIVERIES_KEPT, START_MS + 1_600, START_MS + 2_599]]);
  });

  test('keeps what is not settled beside them', () => {
    using queue = queueWith('one');
    queue.upgrade('A', 7, START_MS - 9);
    queue.upgrade('B', 8, START_MS - 8);
    queue.enqueue.ping('one', START_MS - 7);
    const [claim] = queue.outbox.claim(START_MS, []);
    queue.store.run('UPDATE webhooks SET paused_at_ms = 1'); // without what pausing does to open deliveries
    skipped({ ...queue, pause: () => {} }, 'one', 1_100);
    while (createPrune(queue.store)(START_MS));
    expect(createdOf(queue, 'one')).toEqual([[1_003, START_MS - 9, START_MS + 1_099]]);
    expect(queue.end(claim, answered(200), START_MS)).toBe('recorded');
    while (createPrune(queue.store)(START_MS));
    expect(createdOf(queue, 'one')).toEqual([[1_002, START_MS - 8, START_MS + 1_099]]);
  });

  test('keeps a thousand of those created in one instant, the same that a page shows first', () => {
    using queue = queueWith('one');
    queue.pause('one');
    queue.store.transaction(() => {
      for (let i = 0; i < 1_010; i++) queue.enqueue.ping('one', START_MS);
    })();
    const first = queue.values('SELECT id FROM deliveries ORDER BY id LIMIT 1000');
    while (createPrune(queue.store)(START_MS));
    expect(queue.values('SELECT id FROM deliveries ORDER BY id')).toEqual(first);
  });

  test('reaches every webhook, and the first again in the next round', () => {
    using queue = startQueue();
    const prune = createPrune(queue.store);
    for (let i = 10; i < 60; i++) queue.addWebhook(`${i}`);
    for (let round = 0; round < 2; round++) {
      for (const id of ['10', '34', '59']) skipped(queue, id, 1_001);
      while (prune(START_MS));
      for (const id of ['10', '34', '59']) expect(createdOf(queue, id)[0]?.[0]).toBe(1_000);
    }
  });
});

test.each(
  [
    'attempts_kept',
    'deliveries_old',
    'webhooks_deleted',
    'events_old',
    'webhooks_deleted',
    'webhook_idempotency_old',
  ].map((index, i) => [index, OLD[i]?.[1] ?? ''] as const),
)('what is old is found by the index %s', (index, sql) => {
  using queue = startQueue();
  const plan = queue.rows(`EXPLAIN QUERY PLAN ${sql.replace('?', '1')}`).map(({ detail }) => String(detail));
  expect(plan.join('; ')).toContain(`INDEX ${index}`);
  expect(plan.filter((step) => step.startsWith('SCAN'))).toEqual([]);
});

const HOUR = 3_600_000;

test('old rows are deleted at the start and every day, in batches with pauses, and an hour after a failure', async () => {
  const clock = createVirtualClock(0);
  const over = new AbortController();
  const lines: unknown[] = [];
  const calls: number[] = [];
  const answers = [true, true, false, 'broken', false, false];
  const prune = (nowMs: number) => {
    calls.push(nowMs);
    const answer = answers.shift() ?? false;
    if (answer === 'broken') throw new Error('disk full');
    return answer === true;
  };
  const tending = pruneRegularly({ prune, clock, log: silentLog(lines) }, over.signal);
  await clock.advance(2 * DAY + 2 * HOUR);
  expect(calls).toEqual([0, 50, 100, DAY + 100, DAY + HOUR + 100, 2 * DAY + HOUR + 100]);
  expect(JSON.stringify(lines)).toContain('deleting old deliveries failed');
  over.abort();
  await tending;
  expect(clock.sleepers()).toBe(0);
});
