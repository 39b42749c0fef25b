import { describe, expect, test } from 'bun:test';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { startQueue } from '../outbox/queue.ts';
import { byMe, HOUR_MS, ME, startWebhooks } from './started.ts';

async function started() {
  const webhooks = startWebhooks();
  const { id } = await webhooks.made();
  const { queue, clock } = webhooks;
  /** Every attempt of what is open is answered 500, until all has failed. */
  async function failAll() {
    while (queue.states().some((state) => state !== 'failed')) {
      for (const claim of queue.outbox.claim(clock.now(), [])) queue.end(claim, answered(500), clock.now());
      await clock.advance(HOUR_MS);
    }
  }
  const ids = () => queue.values('SELECT id FROM deliveries ORDER BY rowid').flat().map(String);
  return { ...webhooks, id, failAll, ids };
}

describe('a test', () => {
  test('is a ping that goes through the queue at once', async () => {
    using webhooks = await started();
    const tested = webhooks.sendTest(byMe, webhooks.id);
    const [claim] = webhooks.queue.outbox.claim(START_MS, []);
    expect(tested).toEqual({ kind: 'queued', deliveryId: claim?.deliveryId ?? '' });
    expect(claim).toMatchObject({ eventKind: 'ping', number: 1 });
    expect(webhooks.woken()).toBe(1);
  });

  test('is one of ten in any minute, and waits exactly as long as it is told', async () => {
    using webhooks = await started();
    const { id, clock } = webhooks;
    const kind = () => webhooks.sendTest(byMe, id).kind;
    for (let i = 0; i < 10; i++) {
      expect(kind()).toBe('queued');
      await clock.advance(1_000);
    }
    const refused = webhooks.sendTest(byMe, id);
    expect(refused).toEqual({ kind: 'over-rate', retryAfterSeconds: 50 });
    const other = await webhooks.made();
    expect(webhooks.sendTest(byMe, other.id).kind).toBe('queued');
    await clock.advance(49_999);
    expect(kind()).toBe('over-rate');
    await clock.advance(1);
    expect([kind(), kind()]).toEqual(['queued', 'over-rate']);
    expect(webhooks.ids()).toHaveLength(12);
  });

  test('is not held up by events of the minute', async () => {
    using webhooks = await started();
    for (let slot = 1; slot <= 20; slot++) webhooks.queue.upgrade('A', slot);
    expect(webhooks.sendTest(byMe, webhooks.id).kind).toBe('queued');
  });

  test('waits a minute at most, also when the wall clock was an hour ahead', async () => {
    using webhooks = await started();
    const { id, clock } = webhooks;
    for (let i = 0; i < 10; i++) webhooks.queue.enqueue.ping(id, clock.now() + HOUR_MS);
    expect(webhooks.sendTest(byMe, id)).toEqual({ kind: 'over-rate', retryAfterSeconds: 60 });
  });

  test('leaves the newest thousand deliveries of its webhook, and what is open', async () => {
    using webhooks = await started();
    const { queue, clock, id } = webhooks;
    for (let i = 0; i < 1_100; i++) {
      expect(webhooks.sendTest(byMe, id).kind).toBe('queued');
      for (const claim of queue.outbox.claim(clock.now(), [])) queue.end(claim, answered(200), clock.now());
      await clock.advance(6_000);
    }
    expect(queue.values('SELECT count(*) FROM deliveries')).toEqual([[1_000]]);
    expect(queue.values('SELECT count(*) FROM attempts')).toEqual([[1_000]]);
  });

  test('of a paused webhook is refused, and leaves nothing', async () => {
    using webhooks = await started();
    webhooks.pause(byMe, webhooks.id);
    expect(webhooks.sendTest(byMe, webhooks.id)).toEqual({ kind: 'webhook-paused' });
    expect(webhooks.ids()).toEqual([]);
  });
});

test('a delivery is resent on request, by its webhook', async () => {
  using webhooks = await started();
  webhooks.queue.upgrade('A', 7);
  await webhooks.failAll();
  const [delivery = ''] = webhooks.ids();
  expect(webhooks.resendOne(byMe, webhooks.id, delivery)).toEqual({ kind: 'due' });
  expect(webhooks.woken()).toBe(1);
  expect(webhooks.resendOne(byMe, webhooks.id, delivery)).toEqual({ kind: 'already-due' });
  expect(webhooks.woken()).toBe(1);
  const again = webhooks.queue.outbox.claim(webhooks.clock.now(), []);
  expect(again).toMatchObject([{ deliveryId: delivery, number: undefined, n: 7 }]);
});

test('all that failed since an instant are resent; none while the webhook is paused', async () => {
  using webhooks = await started();
  webhooks.queue.upgrade('A', 7);
  await webhooks.failAll();
  const sinceMs = webhooks.clock.now();
  webhooks.queue.upgrade('A', 8, sinceMs);
  webhooks.queue.upgrade('A', 9, sinceMs);
  await webhooks.failAll();
  webhooks.pause(byMe, webhooks.id);
  expect(webhooks.resendAllFailed(byMe, webhooks.id, sinceMs)).toEqual({ kind: 'webhook-paused' });
  webhooks.resume(byMe, webhooks.id);
  expect(webhooks.resendAllFailed(byMe, webhooks.id, sinceMs)).toEqual({ kind: 'due', deliveries: 2 });
  expect(webhooks.woken()).toBe(1);
  expect(webhooks.resendAllFailed(byMe, webhooks.id, sinceMs)).toEqual({ kind: 'due', deliveries: 0 });
  expect(webhooks.woken()).toBe(1);
});

test('a delivery is shown with its body and its attempts', async () => {
  using webhooks = await started();
  webhooks.queue.upgrade('A', 7);
  await webhooks.failAll();
  const [delivery = ''] = webhooks.ids();
  const shown = webhooks.delivery(ME, webhooks.id, delivery);
  expect(shown).toMatchObject({ id: delivery, state: 'failed', lastStatus: 500, deploySlot: 7 });
  expect(JSON.parse(Buffer.from(shown?.body ?? []).toString())).toMatchObject({ id: delivery });
  expect(shown?.tries.map(({ number, status }) => [number, status])).toEqual(
    [1, 2, 3, 4, 5, 6].map((n) => [n, 500]),
  );
  expect(webhooks.deliveries(ME, { webhookId: webhooks.id, limit: 9 })?.map(({ id }) => id)).toEqual([
    delivery,
  ]);
});

type Queue = ReturnType<typeof startQueue>;
const DAY = 86_400_000;

function idOf(queue: Queue, slot: number): string {
  const [row] = queue.values(
    `SELECT d.id FROM deliveries d JOIN events e ON e.id = d.event_id WHERE e.deploy_slot = ${slot}`,
  );
  return String(row?.[0]);
}
/** Fails a delivery until it is `failed`; gives when that was. */
function failFor(queue: Queue, fromMs: number): number {
  let nowMs = fromMs;
  for (let number = 1; number <= 6; number++) {
    // A webhook that fails has one place.
    for (let claims = queue.claimAll(nowMs, []); claims.length > 0; claims = queue.claimAll(nowMs, []))
      for (const claim of claims) queue.end(claim, answered(500), nowMs);
    nowMs += 7_200_000;
  }
  return nowMs;
}
function start() {
  const queue = startQueue();
  queue.addWebhook('one');
  queue.upgrade('A', 7);
  return queue;
}

describe('a delivery resent by hand', () => {
  test('is the same id and body, one try, counted by itself', () => {
    using queue = start();
    const nowMs = failFor(queue, START_MS);
    const id = idOf(queue, 7);
    const { body } = queue.find(id) ?? {};
    const webhook = queue.values('SELECT * FROM webhooks');
    expect(queue.resend(id, nowMs)).toEqual({ kind: 'due' });
    const claims = queue.outbox.claim(nowMs, []);
    expect(claims).toMatchObject([{ deliveryId: id, n: 7, number: undefined }]);
    expect(claims[0]?.body).toEqual(body ?? new Uint8Array());
    queue.end(claims[0], answered(503), nowMs + 5);
    expect(queue.find(id)).toMatchObject({ state: 'failed', attempts: 6, lastStatus: 503, resendAtMs: null });
    expect(queue.values('SELECT * FROM webhooks')).toEqual(webhook);
    expect(queue.outbox.claim(nowMs + DAY, [])).toEqual([]);

    expect(queue.resend(id, nowMs + 10)).toEqual({ kind: 'due' });
    queue.end(queue.outbox.claim(nowMs + 10, [])[0], answered(200), nowMs + 15);
    expect(queue.find(id)).toMatchObject({ state: 'delivered', attempts: 6, finishedAtMs: nowMs + 15 });
    expect(queue.values('SELECT n, trigger, state FROM attempts WHERE n > 6')).toEqual([
      [7, 'manual', 'failed'],
      [8, 'manual', 'succeeded'],
    ]);
  });

  test('between two automatic attempts leaves their schedule as it is, unless it succeeds', () => {
    using queue = start();
    const id = idOf(queue, 7);
    queue.end(queue.outbox.claim(START_MS, [])[0], answered(500), START_MS);
    queue.resend(id, START_MS + 1);
    const [manual] = queue.outbox.claim(START_MS + 1, []);
    expect(manual?.number).toBeUndefined();
    expect(queue.outbox.claim(START_MS + 30_000, [])).toEqual([]);
    queue.end(manual, answered(500), START_MS + 9);
    expect(queue.find(id)).toMatchObject({
      state: 'retry_scheduled',
      nextAttemptAtMs: START_MS + 30_000,
      attempts: 1,
    });
    queue.resend(id, START_MS + 10);
    queue.end(queue.outbox.claim(START_MS + 10, [])[0], answered(200), START_MS + 11);
    expect(queue.find(id)).toMatchObject({ state: 'delivered', nextAttemptAtMs: null });
    expect(queue.outbox.claim(START_MS + DAY, [])).toEqual([]);
  });

  test('that its process took with it is made again', () => {
    using queue = start();
    const nowMs = failFor(queue, START_MS);
    queue.resend(idOf(queue, 7), nowMs);
    queue.outbox.claim(nowMs, []);
    queue.outbox.reap(nowMs + 30_000, new Set());
    expect(queue.outbox.claim(nowMs + 30_000, [])).toMatchObject([{ n: 8, number: undefined }]);
    expect(queue.states()).toEqual(['failed']);
  });

  test('is attempted twenty times in all and no more, alone or with all that failed', () => {
    using queue = start();
    let nowMs = failFor(queue, START_MS);
    const id = idOf(queue, 7);
    for (let n = 7; n <= 20; n++) {
      if (n % 2 === 0) expect(queue.resend(id, ++nowMs)).toEqual({ kind: 'due' });
      else expect(queue.resendFailed('one', 0, ++nowMs)).toBe(1);
      queue.end(queue.outbox.claim(nowMs, [])[0], answered(500), nowMs);
    }
    expect(queue.resend(id, nowMs)).toEqual({ kind: 'worn-out' });
    expect(queue.resendFailed('one', 0, nowMs)).toBe(0);
    expect(queue.attemptsOf(id)).toHaveLength(20);
  });

  test('is said to wait already when it does, and never twice at a time', () => {
    using queue = start();
    queue.end(queue.outbox.claim(START_MS, [])[0], answered(200), START_MS);
    const id = idOf(queue, 7);
    expect([queue.resend(id, START_MS).kind, queue.resend(id, START_MS).kind]).toEqual([
      'due',
      'already-due',
    ]);
    expect(queue.outbox.claim(START_MS, [])).toHaveLength(1);
    expect(queue.resend(id, START_MS)).toEqual({ kind: 'not-yet', state: 'delivered' });
  });

  test('may be one that was skipped, once its webhook is active again', () => {
    using queue = startQueue();
    queue.addWebhook('one');
    queue.pause('one');
    queue.upgrade('A', 7);
    const id = idOf(queue, 7);
    expect(queue.resend(id, START_MS).kind).toBe('webhook-paused');
    queue.resume('one');
    expect(queue.resend(id, START_MS).kind).toBe('due');
    queue.end(queue.outbox.claim(START_MS, [])[0], answered(200), START_MS);
    expect(queue.states()).toEqual(['delivered']);
  });

  test('is refused with the reason when it cannot be', () => {
    using queue = start();
    expect(queue.resend('unheard of', START_MS)).toEqual({ kind: 'no-delivery' });
    expect(queue.resend(idOf(queue, 7), START_MS)).toEqual({ kind: 'not-yet', state: 'queued' });
    queue.upgrade('B', 8, START_MS, false);
    queue.drop('one');
    expect(queue.resend(idOf(queue, 8), START_MS).kind).toBe('webhook-deleted');
  });

  test('is given up when its webhook is paused or deleted before it was made', () => {
    using queue = start();
    queue.end(queue.outbox.claim(START_MS, [])[0], answered(200), START_MS);
    queue.resend(idOf(queue, 7), START_MS);
    queue.pause('one');
    queue.resume('one');
    expect(queue.outbox.claim(START_MS + DAY, [])).toEqual([]);
  });
});

test('all that failed since an instant are resent, each once, and of one webhook', () => {
  using queue = start();
  queue.addWebhook('two');
  const laterMs = failFor(queue, START_MS);
  queue.upgrade('B', 8, laterMs);
  queue.upgrade('C', 9, laterMs + 1);
  const endMs = failFor(queue, laterMs + 1);
  queue.upgrade('D', 10, endMs);
  expect(queue.resendFailed('one', laterMs, endMs)).toBe(2);
  expect(queue.resendFailed('one', laterMs, endMs)).toBe(0);
  queue.trust(endMs);
  const manual = queue.outbox.claim(endMs, []).filter(({ number }) => number === undefined);
  expect(manual.map(({ deliveryId, webhookId }) => [deliveryId, webhookId])).toContainEqual([
    expect.any(String),
    'one',
  ]);
  expect(manual).toHaveLength(2);
  expect(queue.resendFailed('nobody', 0, endMs)).toBe(0);
});
