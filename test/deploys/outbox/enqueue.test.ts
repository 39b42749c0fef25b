import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import type { Store } from '../../../shared/store/open.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';
import { BLOCK_TIME, queueOver, startQueue, queueWith } from './queue.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Every body as an object. */
function bodies(queue: ReturnType<typeof startQueue>): Record<string, unknown>[] {
  return queue
    .values('SELECT body FROM deliveries')
    .map(([body]) => JSON.parse(Buffer.from(body as Uint8Array).toString())); // a BLOB column
}

describe('a deploy', () => {
  test('becomes a delivery for each webhook that wants the program', () => {
    using queue = queueWith('all');
    queue.addWebhook('some', { programs: [addressOf('B'), addressOf('A')] });
    queue.addWebhook('other', { programs: [addressOf('B')] });
    queue.addWebhook('none', { programs: [] });
    queue.upgrade('A', 7);
    expect(queue.values('SELECT webhook_id, state FROM deliveries ORDER BY webhook_id')).toEqual([
      ['all', 'queued'],
      ['some', 'queued'],
    ]);
  });

  test('that is found again makes no second event, not even for a new webhook (E21)', () => {
    using queue = queueWith('one');
    queue.upgrade('A', 7);
    queue.addWebhook('two');
    queue.upgrade('A', 7);
    expect(queue.values('SELECT webhook_id FROM deliveries')).toEqual([['one']]);
  });

  test('has one id for each webhook, whichever copy of the database finds it (E42)', () => {
    using queue = queueWith('one', 'two');
    const copies = [0, 1].map(() => queueOver(Database.deserialize(queue.store.serialize()) as Store)); // it was one
    for (const [n, copy] of copies.entries())
      for (const slot of [7, 8]) copy.upgrade('A', slot, START_MS + n * 977);
    const [first, second] = copies.map((copy) =>
      copy.values('SELECT webhook_id, id FROM deliveries ORDER BY id'),
    );
    expect(second).toEqual(first ?? []);
    expect(new Set(first?.map(([, id]) => id)).size).toBe(4);
    for (const { store } of copies) store.close();
  });

  test('in the same slot of another chain is another event', () => {
    using queue = queueWith('one');
    for (const genesis of ['first genesis', 'other genesis']) {
      queue.store.run('INSERT OR REPLACE INTO chain VALUES (1, ?)', [genesis]);
      queue.upgrade('A', 7);
    }
    expect(queue.states()).toEqual(['queued', 'queued']);
  });

  test('is recorded as skipped for a paused webhook, with what would have been sent, and not at all for a deleted one (§4.3)', () => {
    using queue = queueWith('paused', 'gone');
    queue.pause('paused');
    queue.drop('gone');
    queue.upgrade('A', 7);
    expect(queue.rows('SELECT webhook_id, state, last_error, finished_at_ms FROM deliveries')).toEqual([
      { webhook_id: 'paused', state: 'skipped', last_error: 'paused', finished_at_ms: START_MS },
    ]);
    expect(bodies(queue)).toHaveLength(1);
    expect(queue.outbox.claim(START_MS, [])).toEqual([]);
  });
});

describe('an event without a block time', () => {
  test('waits for it, over restarts too, and is due as soon as it is known (E20)', () => {
    using queue = queueWith('one');
    queue.upgrade('A', 7, START_MS, false);
    queue.upgrade('B', 9, START_MS, false);
    expect(queue.outbox.awaited()).toEqual([
      { slot: 9n, sinceMs: START_MS },
      { slot: 7n, sinceMs: START_MS },
    ]);
    expect(queue.outbox.claim(START_MS + 1e9, [])).toEqual([]);
    const { outbox, times } = queueOver(queue.store);
    times.save(7n, BLOCK_TIME);
    expect([outbox.release(START_MS + 60_000), outbox.release(START_MS)]).toEqual(['more', 'all']);
    expect(outbox.awaited()).toMatchObject([{ slot: 9n }]);
    expect(outbox.claim(START_MS + 59_999, [])).toEqual([]);
    expect(outbox.claim(START_MS + 60_000, [])).toHaveLength(1);
  });

  test('is not sent to a webhook that was deleted or paused meanwhile', () => {
    using queue = queueWith('one', 'two');
    queue.upgrade('A', 7, START_MS, false);
    queue.drop('one');
    queue.pause('two');
    queue.times.save(7n, BLOCK_TIME);
    while (queue.outbox.release(START_MS) === 'more');
    expect(queue.states()).toEqual(['cancelled', 'skipped']);
    expect(queue.outbox.claim(START_MS, [])).toEqual([]);
  });

  test('gets the bodies of its deliveries in portions', () => {
    using queue = startQueue();
    for (let i = 0; i < 1_100; i++) queue.addWebhook(`webhook ${i}`);
    queue.upgrade('A', 7, START_MS, false);
    queue.times.save(7n, BLOCK_TIME);
    const bodied = () => queue.values('SELECT count(body) FROM deliveries')[0]?.[0];
    const seen: unknown[] = [];
    while (queue.outbox.release(START_MS) === 'more') seen.push(bodied());
    expect(seen).toEqual([500, 1_000, 1_100]);
  });

  test('gets a portion whole or not at all', () => {
    using queue = queueWith('one', 'two');
    queue.upgrade('A', 7, START_MS, false);
    queue.times.save(7n, BLOCK_TIME);
    queue.store.run(`CREATE TRIGGER full BEFORE UPDATE OF body ON deliveries WHEN new.webhook_id = 'two'
      BEGIN SELECT RAISE(ABORT, 'no room'); END`);
    expect(() => queue.outbox.release(START_MS)).toThrow('no room');
    expect(queue.values('SELECT count(body) FROM deliveries')).toEqual([[0]]);
  });
});

test('a ping is a delivery of its own each time (§4.1 ping)', () => {
  using queue = queueWith('one');
  for (let i = 0; i < 2; i++) expect(queue.enqueue.ping('one', START_MS)).toMatch(UUID);
  expect(bodies(queue)[0]).toMatchObject({
    event: 'ping',
    created_at: '2026-11-20T00:00:00.000Z',
    data: { message: expect.stringContaining('test') },
  });
  queue.trust();
  expect(queue.outbox.claim(START_MS, [])).toHaveLength(2);
});
