import { expect, test } from 'bun:test';
import { START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { startQueue } from './queue.ts';

test('pages hold every delivery of a webhook once, newest first', () => {
  using queue = startQueue();
  for (const id of ['one', 'two']) queue.addWebhook(id);
  for (let i = 0; i < 5; i++) queue.upgrade('A', i + 1, START_MS + Math.floor(i / 2));
  const all = queue.list({ webhookId: 'one', limit: 100 });
  expect(all.map(({ createdAtMs }) => createdAtMs - START_MS)).toEqual([2, 1, 1, 0, 0]);
  const paged = [];
  for (let page = queue.list({ webhookId: 'one', limit: 2 }); page.length > 0;) {
    paged.push(...page);
    const after = page.at(-1);
    page = queue.list({ webhookId: 'one', limit: 2, ...(after && { after }) });
  }
  expect(paged).toEqual(all);
  expect(all[0]).toMatchObject({
    programId: addressOf('A'),
    deploySlot: 5,
    state: 'queued',
    eventKind: 'program.upgraded',
  });
});

test('a page may be of one state, and is at most a hundred', () => {
  using queue = startQueue();
  queue.addWebhook('one');
  for (let i = 0; i < 101; i++) queue.enqueue.ping('one', START_MS);
  const [claim] = queue.outbox.claim(START_MS, []);
  queue.end(claim, answered(200), START_MS);
  expect(queue.list({ webhookId: 'one', limit: 1_000 })).toHaveLength(100);
  const delivered = queue.list({ webhookId: 'one', state: 'delivered', limit: 10 });
  expect(delivered.map(({ id }) => id)).toEqual([claim?.deliveryId ?? '']);
  expect(delivered[0]).toMatchObject({ programId: null, deploySlot: null, lastStatus: 200 });
});

test('a delivery is found with its body and its attempts', () => {
  using queue = startQueue();
  queue.addWebhook('one');
  queue.enqueue.ping('one', START_MS);
  const [claim] = queue.outbox.claim(START_MS, []);
  const id = claim?.deliveryId ?? '';
  expect(Buffer.from(queue.find(id)?.body ?? []).toString()).toContain(`"id":"${id}"`);
  expect(queue.attemptsOf(id)).toMatchObject([
    { n: 1, state: 'started', signedAt: START_MS / 1_000, status: null },
  ]);
  expect(queue.find('unheard of')).toBeUndefined();
});
