import { describe, expect, test } from 'bun:test';
import { afterAttempt, type Ended, type Verdict } from '../../../deploys/outbox/outcome.ts';

const NOW = 1_000_000;
const automatic = (number: number, more: Partial<Ended> = {}): Ended => ({
  state: 'attempting',
  number,
  nextAttemptAtMs: undefined,
  finishedAtMs: undefined,
  isDeleted: false,
  isPaused: false,
  ...more,
});
const SUCCEEDED: Verdict = { kind: 'succeeded' };
const FAILED: Verdict = { kind: 'failed', error: 'timeout' };
const BLOCKED: Verdict = { kind: 'blocked', error: 'blocked_address' };
const INTERRUPTED: Verdict = { kind: 'interrupted' };

describe('an automatic attempt (spec 3.2)', () => {
  test.each([1, 2, 3, 4, 5, 6])('that is number %i and succeeds makes the delivery delivered', (number) => {
    expect(afterAttempt(automatic(number), SUCCEEDED, NOW)).toMatchObject({
      state: 'delivered',
      finishedAtMs: NOW,
    });
  });

  test.each([
    [1, 30_000],
    [2, 120_000],
    [3, 600_000],
    [4, 1_800_000],
    [5, 7_200_000],
  ])('that is number %i and fails is followed by another %i ms after its end (spec 8)', (number, delayMs) => {
    for (const verdict of [FAILED, BLOCKED]) {
      expect(afterAttempt(automatic(number), verdict, NOW)).toMatchObject({
        state: 'retry_scheduled',
        nextAttemptAtMs: NOW + delayMs,
        finishedAtMs: undefined,
      });
    }
  });

  test('that is the sixth and fails is the last', () => {
    expect(afterAttempt(automatic(6), FAILED, NOW)).toEqual({
      state: 'failed',
      nextAttemptAtMs: undefined,
      finishedAtMs: NOW,
    });
  });

  test.each([
    [1, 1],
    [5, 5],
    [6, 5],
  ])(
    'that is number %i and was interrupted leaves %i made, and the next is due at once',
    (number, attempts) => {
      expect(afterAttempt(automatic(number), INTERRUPTED, NOW)).toMatchObject({
        state: 'retry_scheduled',
        nextAttemptAtMs: NOW,
        attempts,
      });
    },
  );

  test.each([
    ['cancelled', { isDeleted: true }],
    ['skipped', { isPaused: true }],
    ['cancelled', { isDeleted: true, isPaused: true }],
  ] as const)('of a webhook that left meanwhile ends as %s unless it succeeded (E29)', (state, more) => {
    for (const verdict of [FAILED, INTERRUPTED])
      expect(afterAttempt(automatic(2, more), verdict, NOW)).toMatchObject({ state, finishedAtMs: NOW });
    expect(afterAttempt(automatic(2, more), SUCCEEDED, NOW).state).toBe('delivered');
  });
});

describe('an attempt asked for by hand', () => {
  const waiting = automatic(0, { number: undefined, state: 'retry_scheduled', nextAttemptAtMs: NOW + 5 });
  const failed = automatic(0, { number: undefined, state: 'failed', finishedAtMs: 7 });
  const delivered = automatic(0, { number: undefined, state: 'delivered', finishedAtMs: 7 });

  test('that succeeds delivers, and ends the automatic schedule', () => {
    for (const ended of [waiting, failed])
      expect(afterAttempt(ended, SUCCEEDED, NOW)).toEqual({
        state: 'delivered',
        nextAttemptAtMs: undefined,
        finishedAtMs: NOW,
      });
    expect(afterAttempt(delivered, SUCCEEDED, NOW).finishedAtMs).toBe(7);
  });

  test.each([waiting, failed, delivered])('that fails changes nothing of %p', (ended) => {
    const { state, nextAttemptAtMs, finishedAtMs } = ended;
    const kept = { state, nextAttemptAtMs, finishedAtMs };
    expect(afterAttempt(ended, FAILED, NOW)).toEqual({ ...kept, isResent: false });
    expect(afterAttempt(ended, INTERRUPTED, NOW)).toEqual({ ...kept, isResent: true });
  });
});
