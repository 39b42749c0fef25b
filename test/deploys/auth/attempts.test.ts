import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { createAttempts } from '../../../deploys/auth/attempts.ts';
import { network } from '../../../deploys/auth/login.ts';
import { random } from './people.ts';

/** The kinds of these many attempts at a time. */
function started() {
  const attempts = createAttempts({ burst: 3, refillMs: 1_000 }, random);
  const allowed = (nowMs: number, count = 1) =>
    Array.from({ length: count }, () => attempts.take('a', nowMs)).filter(({ kind }) => kind === 'allowed')
      .length;
  return { ...attempts, allowed };
}

test('a burst is allowed, then one at a time as often as the pace says; a refusal takes nothing', () => {
  const { take, allowed } = started();
  expect(allowed(0, 99)).toBe(3);
  expect(take('a', 0)).toEqual({ kind: 'too-many', retryAfterSeconds: 1 });
  expect([allowed(999), allowed(1_000, 2)]).toEqual([0, 1]);
});

test('an attempt given back counts for nothing, and a clock that steps back gives nothing', () => {
  const { giveBack, allowed } = started();
  for (let i = 0; i < 9; i++) {
    expect(allowed(10_000)).toBe(1);
    giveBack('a');
  }
  expect([allowed(10_000, 4), allowed(0), allowed(10_000)]).toEqual([3, 0, 0]);
});

test('ten thousand other names push nobody out', () => {
  const { take, allowed } = started();
  expect(allowed(0, 3)).toBe(3);
  for (let i = 0; i < 10_000; i++) take(`other ${i}`, 0);
  expect(allowed(0)).toBe(0);
});

test('the wait that is said is enough and not a second too long', () => {
  const pace = fc.record({
    burst: fc.integer({ min: 1, max: 9 }),
    refillMs: fc.integer({ min: 1, max: 99_999 }),
  });
  fc.assert(
    fc.property(pace, fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 30 }), (given, gaps) => {
      const attempts = createAttempts(given, random);
      let nowMs = 0;
      for (const gap of gaps) {
        nowMs += gap;
        attempts.take('a', nowMs);
      }
      const last = attempts.take('a', nowMs);
      if (last.kind === 'allowed') return;
      const waitMs = last.retryAfterSeconds * 1_000;
      if (waitMs > 1_000) expect(attempts.take('a', nowMs + waitMs - 1_001).kind).toBe('too-many');
      expect(attempts.take('a', nowMs + waitMs + 1).kind).toBe('allowed');
    }),
  );
});

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::6', '2001:db8:1:2'],
  ['2001:0DB8:0001:0002::', '2001:db8:1:2'],
  ['2001:db8::6', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  [undefined, 'unknown'],
])('the address %p counts as %p', (address, expected) => expect(network(address)).toBe(expected));
