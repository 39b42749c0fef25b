import { describe, expect, test } from 'bun:test';
import { answered } from '../../fakes/scripted-send.ts';
import { byMe, HOUR_MS, ME, startWebhooks } from './started.ts';

const DAY_MS = 24 * HOUR_MS;

/** One webhook, and one event that waits for its first attempt. */
async function started() {
  const webhooks = startWebhooks();
  const { queue, clock } = webhooks;
  const { id } = await webhooks.made();
  /** Ends the attempts that are due now; gives the first, `undefined` if there is none. */
  function endDue(status: number) {
    const claims = queue.outbox.claim(clock.now(), []);
    for (const claim of claims) queue.end(claim, answered(status), clock.now());
    return claims[0];
  }
  /** Every attempt of what is open is answered 500, until all has failed. */
  async function failAll() {
    while (queue.states().some((state) => state !== 'failed')) {
      while (endDue(500) !== undefined);
      await clock.advance(2 * HOUR_MS);
    }
  }
  const ids = () => queue.values('SELECT id FROM deliveries ORDER BY rowid').flat().map(String);
  /** Asks for one more attempt of the nth delivery. */
  const resend = (nth = 0) => webhooks.resendOne(byMe, id, ids()[nth] ?? '');
  return { ...webhooks, id, endDue, failAll, ids, resend };
}

describe('a test', () => {
  test('is one of ten in any minute, and waits exactly as long as it is told', async () => {
    using webhooks = await started();
    const { id, clock } = webhooks;
    for (let slot = 1; slot <= 20; slot++) webhooks.queue.upgrade('A', slot); // events do not count
    const kind = () => webhooks.sendTest(byMe, id).kind;
    for (let i = 0; i < 10; i++) {
      expect(kind()).toBe('queued');
      await clock.advance(1_000);
    }
    const refused = webhooks.sendTest(byMe, id);
    expect(refused).toEqual({ kind: 'over-rate', retryAfterSeconds: 50 });
    const other = await webhooks.made();
    expect(webhooks.sendTest(byMe, other.id).kind).toBe('queued');
    // A wall clock that was an hour ahead makes nobody wait longer than a minute.
    for (let i = 0; i < 10; i++) webhooks.queue.enqueue.ping(other.id, clock.now() + HOUR_MS);
    expect(webhooks.sendTest(byMe, other.id)).toEqual({ kind: 'over-rate', retryAfterSeconds: 60 });
    await clock.advance(49_999);
    expect(kind()).toBe('over-rate');
    await clock.advance(1);
    expect([kind(), kind()]).toEqual(['queued', 'over-rate']);
    expect(webhooks.ids()).toHaveLength(12 + 10 + 2 * 20 - 20);
  });

  test('leaves the newest thousand deliveries of its webhook, and what is open', async () => {
    using webhooks = await started();
    const { queue, clock, id } = webhooks;
    webhooks.pause(byMe, id);
    queue.store.transaction(() => {
      for (let i = 0; i < 1_100; i++) queue.enqueue.ping(id, clock.now() - HOUR_MS);
    })();
    webhooks.resume(byMe, id);
    queue.upgrade('A', 7);
    for (let i = 0; i < 3; i++) {
      expect(webhooks.sendTest(byMe, id).kind).toBe('queued');
      await clock.advance(6_000);
    }
    expect(queue.states().filter((state) => state === 'queued')).toHaveLength(4);
    expect(queue.values('SELECT count(*) FROM deliveries')).toEqual([[1_000]]);
  });
});

describe('a delivery resent by hand', () => {
  test('is the same id and body, one try, counted by itself', async () => {
    using webhooks = await started();
    const { queue, clock, resend, endDue } = webhooks;
    queue.upgrade('A', 7);
    await webhooks.failAll();
    const [id = ''] = webhooks.ids();
    const { body } = queue.find(id) ?? {};
    const before = queue.values('SELECT * FROM webhooks');
    expect(resend()).toEqual({ kind: 'due' });
    expect(webhooks.woken()).toBe(1);
    const claim = endDue(503);
    expect(claim).toMatchObject({ deliveryId: id, n: 7, number: undefined });
    expect(claim?.body).toEqual(body ?? new Uint8Array());
    expect(queue.find(id)).toMatchObject({ state: 'failed', attempts: 6, lastStatus: 503, resendAtMs: null });
    expect(queue.values('SELECT * FROM webhooks')).toEqual(before);
    await clock.advance(DAY_MS);
    expect(endDue(200)).toBeUndefined();

    expect(resend()).toEqual({ kind: 'due' });
    endDue(200);
    expect(queue.find(id)).toMatchObject({ state: 'delivered', attempts: 6, finishedAtMs: clock.now() });
    expect(queue.values('SELECT n, trigger, state FROM attempts WHERE n > 6')).toEqual([
      [7, 'manual', 'failed'],
      [8, 'manual', 'succeeded'],
    ]);
  });

  test('is attempted twenty times in all and no more, alone or with all that failed (§6 webhook attempts)', async () => {
    using webhooks = await started();
    const { resend, endDue, id } = webhooks;
    webhooks.queue.upgrade('A', 7);
    await webhooks.failAll();
    for (let n = 7; n <= 20; n++) {
      if (n % 2 === 0) expect(resend()).toEqual({ kind: 'due' });
      else expect(webhooks.resendAllFailed(byMe, id, 0)).toEqual({ kind: 'due', deliveries: 1 });
      endDue(500);
    }
    expect(resend()).toEqual({ kind: 'worn-out' });
    expect(webhooks.resendAllFailed(byMe, id, 0)).toEqual({ kind: 'due', deliveries: 0 });
    expect(webhooks.delivery(ME, id, webhooks.ids()[0] ?? '')?.tries).toHaveLength(20);
  });

  test('is refused with the reason when it cannot be, and never under way twice', async () => {
    using webhooks = await started();
    const { queue, clock, resend } = webhooks;
    expect(resend()).toEqual({ kind: 'no-delivery' });
    queue.upgrade('A', 7);
    expect(resend()).toEqual({ kind: 'not-yet', state: 'queued' });
    webhooks.endDue(200);
    expect([resend(), resend()]).toEqual([{ kind: 'due' }, { kind: 'already-due' }]);
    expect(webhooks.woken()).toBe(1);
    expect(queue.outbox.claim(clock.now(), [])).toHaveLength(1);
    expect(resend()).toEqual({ kind: 'not-yet', state: 'delivered' });
  });

  test('may be one that was skipped, once its webhook is active again; pausing gives up what waits', async () => {
    using webhooks = await started();
    const { queue, resend, endDue, id } = webhooks;
    webhooks.pause(byMe, id);
    queue.upgrade('A', 7);
    expect(resend()).toEqual({ kind: 'webhook-paused' });
    webhooks.resume(byMe, id);
    expect(resend()).toEqual({ kind: 'due' });
    webhooks.pause(byMe, id);
    webhooks.resume(byMe, id);
    expect(endDue(200)).toBeUndefined();
    expect(resend()).toEqual({ kind: 'due' });
    endDue(200);
    expect(queue.states()).toEqual(['delivered']);
  });
});

test('all that failed since an instant are resent, each once, of one webhook, and none while it is paused', async () => {
  using webhooks = await started();
  const { queue, id } = webhooks;
  await webhooks.made();
  queue.upgrade('A', 7);
  await webhooks.failAll();
  const sinceMs = webhooks.clock.now();
  for (const slot of [8, 9]) queue.upgrade('A', slot, sinceMs);
  await webhooks.failAll();
  webhooks.pause(byMe, id);
  expect(webhooks.resendAllFailed(byMe, id, sinceMs)).toEqual({ kind: 'webhook-paused' });
  expect(webhooks.failedSince(ME, id, sinceMs)).toBe(0);
  webhooks.resume(byMe, id);
  expect(webhooks.failedSince(ME, id, sinceMs)).toBe(2);
  expect(webhooks.resendAllFailed(byMe, id, sinceMs)).toEqual({ kind: 'due', deliveries: 2 });
  expect(webhooks.resendAllFailed(byMe, id, sinceMs)).toEqual({ kind: 'due', deliveries: 0 });
  expect(webhooks.woken()).toBe(1);
  queue.trust(webhooks.clock.now());
  const claims = queue.outbox.claim(webhooks.clock.now(), []);
  expect(claims.map(({ webhookId, number }) => [webhookId, number])).toEqual([
    [id, undefined],
    [id, undefined],
  ]);
});
