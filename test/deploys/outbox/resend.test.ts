import { describe, expect, test } from 'bun:test';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { startQueue } from './queue.ts';

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
