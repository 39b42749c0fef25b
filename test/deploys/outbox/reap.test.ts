import { describe, expect, test } from 'bun:test';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { startQueue } from './queue.ts';

const HOUR = 3_600_000;

/** A queue with one delivery and its first attempt under way. */
function attempting() {
  const queue = startQueue();
  queue.addWebhook('one');
  queue.upgrade('A', 7);
  const [claim] = queue.outbox.claim(START_MS, []);
  return { ...queue, claim };
}
const nobody = new Set<string>();

describe('what a process took with it when it died', () => {
  test('comes back when its lease runs out, and is due at once (E19)', () => {
    using queue = attempting();
    expect(queue.outbox.reap(START_MS + 29_999, nobody)).toBe(0);
    expect(queue.outbox.reap(START_MS + 30_000, nobody)).toBe(1);
    expect(queue.values('SELECT n, number, state, ended_at_ms, error FROM attempts')).toEqual([
      [1, 1, 'interrupted', START_MS + 30_000, null],
    ]);
    const [again] = queue.outbox.claim(START_MS + 30_000, []);
    expect(again).toMatchObject({
      deliveryId: queue.claim?.deliveryId,
      body: queue.claim?.body,
      n: 2,
      number: 2,
    });
    expect(again?.token).not.toBe(queue.claim?.token);
  });

  test('is not taken from the one who lives, however late he is', () => {
    using queue = attempting();
    expect(queue.outbox.reap(START_MS + HOUR, new Set([queue.claim?.deliveryId ?? '']))).toBe(0);
    expect(queue.end(queue.claim, answered(200), START_MS + HOUR)).toBe('recorded');
  });

  test('as the sixth is made again under its number: no delivery fails without a known answer', () => {
    using queue = attempting();
    let [claim, nowMs] = [queue.claim, START_MS];
    for (let number = 1; number <= 5; number++) {
      queue.end(claim, answered(500), nowMs);
      nowMs += 2 * HOUR;
      [claim] = queue.outbox.claim(nowMs, []);
    }
    expect(claim).toMatchObject({ n: 6, number: 6 });
    for (let crash = 0; crash < 3; crash++) {
      nowMs += 30_000;
      queue.outbox.reap(nowMs, nobody);
      expect(queue.values('SELECT number, state FROM attempts WHERE n = 6')).toEqual([[6, 'interrupted']]);
      [claim] = queue.outbox.claim(nowMs, []);
      expect(claim).toMatchObject({ n: 6, number: 6 });
    }
    queue.end(claim, answered(500), nowMs);
    expect(queue.states()).toEqual(['failed']);
    expect(queue.values('SELECT count(*) FROM attempts')).toEqual([[6]]);
  });

  test('of a webhook deleted meanwhile is cancelled', () => {
    using queue = attempting();
    queue.drop('one');
    queue.outbox.reap(START_MS + 30_000, nobody);
    expect(queue.states()).toEqual(['cancelled']);
  });
});

describe('a wall clock that was ahead (E26)', () => {
  test('delays no delivery by more than two hours once it is right', () => {
    using queue = attempting();
    queue.end(queue.claim, answered(500), START_MS + 24 * HOUR);
    queue.outbox.reap(START_MS, nobody);
    expect(queue.outbox.nextDueAtMs(START_MS)).toBe(START_MS + 2 * HOUR);
  });

  test('holds no lease for longer than a lease', () => {
    using queue = startQueue();
    queue.addWebhook('one');
    queue.upgrade('A', 7);
    queue.outbox.claim(START_MS + 24 * HOUR, []);
    queue.outbox.reap(START_MS, nobody);
    expect(queue.outbox.reap(START_MS + 30_000, nobody)).toBe(1);
  });
});
