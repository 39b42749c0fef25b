import { describe, expect, test } from 'bun:test';
import { afterAttempt, type Ended, type Verdict } from '../../../deploys/outbox/outcome.ts';

const NOW = 1_000_000;
const attempting: Ended = { state: 'attempting', nextAttemptAtMs: null, finishedAtMs: null, endsAs: null };
const SUCCEEDED: Verdict = { kind: 'succeeded' };
const FAILED: Verdict = { kind: 'failed', error: 'timeout' };
const BLOCKED: Verdict = { kind: 'blocked', error: 'blocked_address' };
const INTERRUPTED: Verdict = { kind: 'interrupted' };
const final = (state: string, finishedAtMs = NOW) =>
  ({ state, nextAttemptAtMs: null, finishedAtMs }) as never; // of the table
const retry = (nextAttemptAtMs: number, more = {}) =>
  ({ state: 'retry_scheduled', nextAttemptAtMs, finishedAtMs: null, ...more }) as never; // of the table

test.each([
  [1, 30_000],
  [2, 120_000],
  [3, 600_000],
  [4, 1_800_000],
  [5, 7_200_000],
  [6, undefined],
])(
  'automatic attempt %i that fails is followed by another %p ms after its end (spec 3.2, 8)',
  (number, delayMs) => {
    const after = delayMs === undefined ? final('failed') : retry(NOW + delayMs);
    for (const verdict of [FAILED, BLOCKED])
      expect(afterAttempt(attempting, number, verdict, NOW)).toEqual(after);
    expect(afterAttempt(attempting, number, SUCCEEDED, NOW)).toEqual(final('delivered'));
  },
);

test.each([
  [1, 1],
  [5, 5],
  [6, 5],
])(
  'automatic attempt %i that was interrupted leaves %i made, and the next is due at once',
  (number, attempts) => {
    expect(afterAttempt(attempting, number, INTERRUPTED, NOW)).toEqual(retry(NOW, { attempts }));
  },
);

test.each(['cancelled', 'skipped'] as const)(
  'an automatic attempt of a webhook that left meanwhile ends as %s unless it succeeded (E29)',
  (endsAs) => {
    for (const verdict of [FAILED, INTERRUPTED])
      expect(afterAttempt({ ...attempting, endsAs }, 2, verdict, NOW)).toEqual(final(endsAs));
    expect(afterAttempt({ ...attempting, endsAs }, 2, SUCCEEDED, NOW)).toEqual(final('delivered'));
  },
);

describe('an attempt asked for by hand', () => {
  const rows: readonly Ended[] = [
    { ...attempting, state: 'retry_scheduled', nextAttemptAtMs: NOW + 5 },
    { ...attempting, state: 'failed', finishedAtMs: 7 },
    { ...attempting, state: 'delivered', finishedAtMs: 7 },
  ];

  test.each(rows)('delivers with a success, and changes nothing else of %p', (row) => {
    const { endsAs: _, ...kept } = row;
    expect(afterAttempt(row, undefined, FAILED, NOW)).toEqual({ ...kept, isResent: false });
    expect(afterAttempt(row, undefined, INTERRUPTED, NOW)).toEqual({ ...kept, isResent: true });
    const after = final('delivered', row.state === 'delivered' ? 7 : NOW);
    expect(afterAttempt(row, undefined, SUCCEEDED, NOW)).toEqual(after);
  });

  test('that was interrupted is not made again for a webhook that left', () => {
    const row: Ended = { ...attempting, state: 'failed', finishedAtMs: 7, endsAs: 'skipped' };
    expect(afterAttempt(row, undefined, INTERRUPTED, NOW).isResent).toBe(false);
  });
});
