import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { createRequestLog, REQUESTS_MAX, WINDOW_MS } from '../../../deploys/api/request-log.ts';
import type { KeyId } from '../../../shared/keys/api-key.ts';

const id = (text: string) => text as KeyId; // any text will do for a name
const KEY = id('a');

test('one key may send 60 in a minute (spec 8)', () => {
  expect([REQUESTS_MAX, WINDOW_MS]).toEqual([60, 60_000]);
});

test.each([
  [59_999, 1],
  [60_000, 'entered'],
])('%i ms after sixty at once the next is told to wait, or entered: %p', (nowMs, expected) => {
  const enter = createRequestLog();
  for (let i = 0; i < 60; i++) enter(KEY, 0);
  const entry = enter(KEY, nowMs);
  expect(entry.kind === 'entered' ? 'entered' : entry.retryAfterSeconds).toBe(expected);
});

test.each([
  [0, 60],
  [1, 60],
  [999, 60],
  [1_000, 59],
  [59_000, 1],
  [59_000.5, 1],
])('at %d ms the wait is %i whole seconds', (nowMs, seconds) => {
  const enter = createRequestLog();
  for (let i = 0; i < 60; i++) enter(KEY, 0);
  expect(enter(KEY, nowMs)).toEqual({ kind: 'over-rate', retryAfterSeconds: seconds });
});

/** Gaps between requests in milliseconds, crowded enough that the limit is met. */
const crowded = (gap: fc.Arbitrary<number>) =>
  fc.array(fc.oneof(fc.constant(0), gap), { minLength: 100, maxLength: 400 });
const whole = crowded(fc.integer({ min: 0, max: 2_500 }));
const fractions = crowded(fc.double({ min: 0, max: 2_500, noNaN: true }));

test('in whole milliseconds no 60 seconds hold more than 60, and no refusal is needless', () => {
  fc.assert(
    fc.property(whole, (waits) => {
      const enter = createRequestLog();
      const enteredMs: number[] = [];
      let nowMs = 0;
      for (const wait of waits) {
        nowMs += wait;
        const inMinute = enteredMs.filter((atMs) => nowMs - atMs < WINDOW_MS).length;
        const entry = enter(KEY, nowMs);
        expect(entry.kind).toBe(inMinute < REQUESTS_MAX ? 'entered' : 'over-rate');
        if (entry.kind === 'entered') enteredMs.push(nowMs);
      }
    }),
    { numRuns: 50 },
  );
});

test('with fractions no 60 seconds hold more than 60 either', () => {
  fc.assert(
    fc.property(fractions, (waits) => {
      const enter = createRequestLog();
      const enteredMs: number[] = [];
      let nowMs = 0;
      for (const wait of waits) {
        nowMs += wait;
        if (enter(KEY, nowMs).kind === 'entered') enteredMs.push(nowMs);
        const sixtyAgoMs = enteredMs.at(-REQUESTS_MAX - 1);
        if (sixtyAgoMs !== undefined)
          expect((enteredMs.at(-1) ?? 0) - sixtyAgoMs).toBeGreaterThanOrEqual(WINDOW_MS);
      }
    }),
    { numRuns: 50 },
  );
});

test('a caller that waits exactly Retry-After is never refused twice in a row', () => {
  fc.assert(
    fc.property(fractions, (waits) => {
      const enter = createRequestLog();
      let nowMs = 0;
      for (const wait of waits) {
        nowMs += wait;
        const entry = enter(KEY, nowMs);
        if (entry.kind === 'entered') continue;
        nowMs += entry.retryAfterSeconds * 1_000;
        expect(enter(KEY, nowMs).kind).toBe('entered');
      }
    }),
    { numRuns: 50 },
  );
});

test('a key that is known already pushes nobody out', () => {
  const enter = createRequestLog(2);
  for (let i = 0; i < 60; i++) enter(id('spent'), 0);
  enter(id('other'), 1);
  enter(id('other'), 2);
  expect(enter(id('spent'), 3).kind).toBe('over-rate');
});

test('memory is bounded: the key that was quiet longest is forgotten first', () => {
  const enter = createRequestLog(2);
  for (let i = 0; i < 60; i++) enter(id('busy'), 0);
  enter(id('quiet'), 1);
  for (let i = 0; i < 3; i++) {
    expect(enter(id('busy'), 60_001 + i).kind).toBe('entered');
    enter(id(`new ${i}`), 60_002 + i);
  }
  for (let i = 0; i < 57; i++) expect(enter(id('busy'), 60_010).kind).toBe('entered');
  expect(enter(id('busy'), 60_010).kind).toBe('over-rate');
});
