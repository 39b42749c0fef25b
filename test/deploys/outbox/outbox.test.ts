import { describe, expect, test } from 'bun:test';
import type { Verdict } from '../../../deploys/outbox/outcome.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { startQueue } from './queue.ts';

/** A queue with one webhook and one delivery that is being attempted. */
function attempting() {
  const queue = startQueue();
  queue.addWebhook('one');
  queue.upgrade('A', 7);
  const [claim] = queue.outbox.claim(START_MS, []);
  if (claim === undefined) throw new Error('nothing was due');
  return { ...queue, claim };
}
const SUCCEEDED: Verdict = { kind: 'succeeded' };
const WEBHOOK = 'SELECT failing_since_ms, consecutive_failures, last_success_at_ms FROM webhooks';

describe('the end of an attempt', () => {
  test('is written with the answer', () => {
    using queue = attempting();
    expect(queue.end(queue.claim, answered(201, 'thanks'), START_MS + 40)).toBe('recorded');
    const columns = 'state, last_status, last_error, finished_at_ms, lease_token';
    expect(queue.values(`SELECT ${columns} FROM deliveries`)).toEqual([
      ['delivered', 201, null, START_MS + 40, null],
    ]);
    expect(queue.attemptsOf(queue.claim.deliveryId)).toMatchObject([
      {
        n: 1,
        number: 1,
        trigger: 'auto',
        state: 'succeeded',
        url: 'https://one.example.com/hook',
        endedAtMs: START_MS + 40,
        status: 201,
        error: null,
        remoteAddress: '198.41.0.44',
        answerHeadersJson: '[["Content-Type","text/plain"]]',
        answerBody: new Uint8Array(Buffer.from('thanks')),
        answerBodyKind: 'whole',
        phasesJson: expect.stringContaining('"totalMs":4'),
      },
    ]);
  });

  test('that the schema refuses holds up no other', () => {
    using queue = attempting();
    queue.upgrade('B', 8);
    const ended = { verdict: SUCCEEDED, sent: answered(200), headers: {} };
    const results = [queue.claim, ...queue.outbox.claim(START_MS, [])].map((claim, i) => ({
      ...ended,
      claim,
      endedAtMs: [0.5, START_MS][i] ?? 0,
    }));
    expect(queue.outbox.finish(results)).toEqual(['unwritable', 'recorded']);
    queue.outbox.reap(START_MS + 30_000, new Set());
    expect(queue.states()).toEqual(['retry_scheduled', 'delivered']);
  });
});

test('the ends of several attempts are written together, or none is', () => {
  using queue = attempting();
  queue.upgrade('B', 8);
  const [second] = queue.outbox.claim(START_MS, []);
  if (second === undefined) throw new Error('nothing was due');
  const ended = { verdict: SUCCEEDED, headers: {}, endedAtMs: START_MS };
  const broken = {
    ...ended,
    claim: second,
    get sent(): never {
      throw new Error('the disk is gone');
    },
  };
  const good = { ...ended, claim: queue.claim, sent: answered(200) };
  expect(() => queue.outbox.finish([good, broken])).toThrow('gone');
  expect(queue.states()).toEqual(['attempting', 'attempting']);
});

describe('a webhook', () => {
  test('is failing since its first failure, until an attempt succeeds', () => {
    using queue = attempting();
    queue.end(queue.claim, answered(500), START_MS + 1);
    const [second] = queue.outbox.claim(START_MS + 60_000, []);
    queue.end(second, failedWith('timeout'), START_MS + 60_001);
    expect(queue.values(WEBHOOK)).toEqual([[START_MS + 1, 2, null]]);
    const [third] = queue.outbox.claim(START_MS + 600_000, []);
    queue.end(third, answered(200), START_MS + 600_001);
    expect(queue.values(WEBHOOK)).toEqual([[null, 0, START_MS + 600_001]]);
  });

  test('is not failing after an interrupted attempt', () => {
    using queue = attempting();
    queue.end(queue.claim, failedWith('aborted'), START_MS + 1);
    expect(queue.values(WEBHOOK)).toEqual([[null, 0, null]]);
    expect(queue.values('SELECT state, next_attempt_at_ms, last_error FROM deliveries')).toEqual([
      ['retry_scheduled', START_MS + 1, null],
    ]);
  });

  test('that is deleted cancels what is open at once; the attempt under way may still succeed (E29)', () => {
    using queue = attempting();
    queue.upgrade('B', 8);
    queue.drop('one');
    expect(queue.states()).toEqual(['attempting', 'cancelled']);
    queue.end(queue.claim, answered(200), START_MS + 1);
    expect(queue.states()).toEqual(['delivered', 'cancelled']);
  });

  test('that is paused gets no further attempt of what it failed (E29)', () => {
    using queue = attempting();
    queue.end(queue.claim, answered(500), START_MS + 1);
    queue.upgrade('B', 8);
    const [second] = queue.outbox.claim(START_MS, []);
    queue.pause('one');
    expect(queue.states()).toEqual(['skipped', 'attempting']);
    queue.end(second, answered(500), START_MS + 1);
    queue.resume('one');
    expect(queue.states()).toEqual(['skipped', 'skipped']);
    expect(queue.outbox.claim(START_MS + 1e9, [])).toEqual([]);
  });
});

const HOUR = 3_600_000;

test('a wall clock that was ahead delays no delivery by more than two hours once it is corrected (E26)', () => {
  using queue = attempting();
  queue.end(queue.claim, answered(500), START_MS + 24 * HOUR);
  queue.outbox.reap(START_MS, new Set());
  expect(queue.outbox.nextDueAtMs(START_MS)).toBe(START_MS + 2 * HOUR);
});
