import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createReadQueue } from '../../../deploys/outbox/list.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { explained } from '../explained.ts';
import { startQueue } from './queue.ts';

let queue: ReturnType<typeof startQueue>;
beforeEach(() => (queue = startQueue()));
afterEach(() => queue[Symbol.dispose]());
const read = () => createReadQueue(queue.store);

describe('the queue', () => {
  test('tells what is due, in flight, due later, and waits for its block time', () => {
    for (const id of ['a', 'b']) queue.addWebhook(id);
    queue.upgrade('one', 5, START_MS);
    queue.upgrade('two', 6, START_MS, false);
    const [claim] = queue.outbox.claim(START_MS, []);
    expect(read().state(START_MS + 1)).toMatchObject({ due: 0, inFlight: 2, eventsWaiting: 1 });
    queue.end(claim, answered(503), START_MS + 10);
    const state = read().state(START_MS + 20);
    expect(state).toMatchObject({ due: 0, inFlight: 1, later: 1 });
    const nextMs = state.nextDueAtMs ?? 0;
    expect(nextMs).toBeGreaterThan(START_MS + 20);
    expect(read().state(nextMs)).toMatchObject({ due: 1, oldestDueAtMs: nextMs, later: 0 });
  });

  test('tells which attempts came to nothing, the newest first, and why', () => {
    queue.addWebhook('a');
    queue.upgrade('one', 5, START_MS);
    const [first] = queue.outbox.claim(START_MS, []);
    queue.end(first, answered(503), START_MS + 10);
    queue.upgrade('two', 6, START_MS + 50);
    const [second] = queue.outbox.claim(START_MS + 50, []);
    queue.end(second, failedWith('blocked_address'), START_MS + 60);
    queue.upgrade('three', 7, START_MS + 70);
    const [third] = queue.outbox.claim(START_MS + 70, []);
    queue.end(third, answered(200), START_MS + 80);
    const { wrongAttempts, reasons } = read();
    expect(wrongAttempts(9)).toMatchObject([
      { webhookId: 'a', accountId: 1, host: 'a.example.com', state: 'blocked', error: 'blocked_address' },
      {
        state: 'failed',
        error: 'http_503',
        number: 1,
        deliveryState: 'retry_scheduled',
        startedAtMs: START_MS,
      },
    ]);
    expect(wrongAttempts(1)).toHaveLength(1);
    expect(reasons('failed', 0)).toEqual([{ reason: 'http_503', attempts: 1, lastAtMs: START_MS }]);
    expect(reasons('blocked', 0)).toMatchObject([{ reason: 'blocked_address', attempts: 1 }]);
    expect(reasons('failed', START_MS + 1)).toEqual([]);
  });

  test('tells the hosts at which webhooks fail, those with the most first', () => {
    for (const [id, host, sinceMs] of [
      ['a', 'one.example', 10],
      ['b', 'two.example', 30],
      ['c', 'two.example', 20],
      ['d', 'gone.example', 5],
      ['e', 'well.example', null],
    ] as const) {
      queue.addWebhook(id, { host });
      queue.store.run('UPDATE webhooks SET failing_since_ms = ? WHERE id = ?', [sinceMs, id]);
    }
    queue.drop('d');
    expect(read().failingHosts()).toEqual([
      { host: 'two.example', webhooks: 2, sinceMs: 20 },
      { host: 'one.example', webhooks: 1, sinceMs: 10 },
    ]);
  });
});

test('how the queue stands is read by indexes that have no more than what is asked', () => {
  const statements = explained(queue.store, createReadQueue);
  expect(statements).toHaveLength(11);
  const allowed =
    /INDEX (deliveries_due|deliveries_leased|events_waiting|attempts_failed|attempts_blocked|webhooks_failing)\b/;
  for (const { sql, steps } of statements) {
    const tables = steps.filter((step) =>
      /^(SCAN|SEARCH) (deliveries|events|attempts|webhooks)\b/.test(step),
    );
    expect([sql, tables.length, tables.filter((step) => !allowed.test(step))]).toEqual([
      sql,
      tables.length,
      [],
    ]);
    expect(tables.length).toBeGreaterThan(0);
  }
});
