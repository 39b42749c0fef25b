import { describe, expect, test } from 'bun:test';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
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
