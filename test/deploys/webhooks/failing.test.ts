import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createFailing } from '../../../deploys/webhooks/webhook-health.ts';
import { explained } from '../explained.ts';
import { startQueue } from '../outbox/queue.ts';

let queue: ReturnType<typeof startQueue>;
beforeEach(() => {
  queue = startQueue();
  for (const id of ['a', 'b', 'c', 'd', 'e']) queue.addWebhook(id);
});
afterEach(() => queue[Symbol.dispose]());

test('webhooks that fail are told, the longest first, in pages; deleted ones and well ones are not', () => {
  const fail = (id: string, sinceMs: number) =>
    queue.store.run('UPDATE webhooks SET failing_since_ms = ?, consecutive_failures = 3 WHERE id = ?', [
      sinceMs,
      id,
    ]);
  fail('a', 30);
  fail('b', 10);
  fail('c', 10);
  fail('d', 5);
  queue.drop('d');
  queue.pause('b');
  const failing = createFailing(queue.store);
  expect(failing(2)).toEqual([
    {
      id: 'b',
      accountId: 1,
      host: 'b.example.com',
      failingSinceMs: 10,
      consecutiveFailures: 3,
      lastSuccessAtMs: null,
      isPaused: true,
    },
    expect.objectContaining({ id: 'c', isPaused: false }),
  ] as never); // a matcher stands for a whole row
  expect(failing(2, { failingSinceMs: 10, id: 'c' }).map(({ id }) => id)).toEqual(['a']);
});

test('they are found by an index that has no others', () => {
  const [page] = explained(queue.store, createFailing);
  expect(page?.steps).toEqual(['SEARCH webhooks USING INDEX webhooks_failing ((failing_since_ms,id)>(?,?))']);
});
