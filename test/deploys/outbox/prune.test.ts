import { describe, expect, test } from 'bun:test';
import { createPrune } from '../../../deploys/outbox/prune.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { startQueue } from './queue.ts';

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
  ])('after %i ms keeps webhooks, events, deliveries, attempts and answers: %p', (ageMs, counts) => {
    using queue = start();
    queue.prune(START_MS + ageMs);
    expect(queue.values(COUNTS)).toEqual([counts]);
  });

  test('lets a deleted webhook go with its last delivery', () => {
    using queue = start();
    queue.drop('one', START_MS + DAY);
    queue.prune(START_MS + 90 * DAY + 1);
    expect(queue.values(COUNTS)).toEqual([[1, 0, 0, 0, 0]]);
    queue.prune(START_MS + 91 * DAY + 1);
    expect(queue.values(COUNTS)).toEqual([[0, 0, 0, 0, 0]]);
  });

  test('takes nothing away that is being attempted', () => {
    using queue = start();
    queue.upgrade('B', 8);
    const [claim] = queue.outbox.claim(START_MS + 90 * DAY, []);
    queue.prune(START_MS + 100 * DAY);
    expect(queue.end(claim, answered(200), START_MS + 100 * DAY)).toBe('recorded');
  });

  test('goes in batches that say whether there is more', () => {
    using queue = start();
    const prune = createPrune(queue.store);
    for (let i = 0; i < 600; i++) queue.enqueue.ping('one', START_MS);
    const left: unknown[] = [];
    while (prune(START_MS + 91 * DAY)) left.push(queue.values('SELECT count(*) FROM deliveries')[0]?.[0]);
    expect(left).toEqual([601, 101, 0, 0]);
  });
});
