import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { type Bucket, MICRO, refill, shortMs } from '../../../gateway/limits/bucket.ts';
import { retryAfterSeconds } from '../../../shared/clock.ts';

type Rate = Readonly<{ burst: number; perMs: number }>;
const full = (rate: Rate, atMs = 0): Bucket => ({ micro: rate.burst * MICRO, atMs, ...rate });

/** A bucket at a later instant, and at another rate. */
function refilled(before: Bucket, rate: Rate, nowMs: number): Bucket {
  const bucket = { ...before, ...rate };
  refill(bucket, nowMs);
  return bucket;
}

/** Takes `calls` at `nowMs`, all or none; `before` stays as it is. */
function take(before: Bucket, rate: Rate, calls: number, nowMs: number) {
  const bucket = refilled(before, rate, nowMs);
  const waitMs = shortMs(bucket, calls);
  if (waitMs > 0) return { kind: 'short', bucket, waitMs };
  return { kind: 'taken', bucket: { ...bucket, micro: bucket.micro - calls * MICRO }, waitMs };
}

test('C8 a clock that steps back mints nothing, then or when it is right again', () => {
  const bucket = { ...full({ burst: 10, perMs: 5_000 }, 1_000), micro: 0 };
  const micro = [0, 500, 1_000, 1_200].map((nowMs) => (refill(bucket, nowMs), bucket.micro));
  expect(micro).toEqual([0, 0, 0, MICRO]);
});

test('a smaller burst takes the surplus away, a larger one adds only what time brings', () => {
  const bucket = full({ burst: 10, perMs: 5_000 });
  expect(refilled(bucket, { burst: 4, perMs: 5_000 }, 0).micro).toBe(4 * MICRO);
  expect(refilled(bucket, { burst: 1_000, perMs: 5_000 }, 1_000).micro).toBe(15 * MICRO);
});

describe('over any sequence of calls', () => {
  const rate = fc.record({
    burst: fc.integer({ min: 1, max: 1_000 }),
    perMs: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1_000, max: 10_000_000 })),
  });
  /** Milliseconds that pass, sometimes backwards, and the calls then asked for. */
  const step = fc.record({
    passMs: fc.oneof(
      { weight: 5, arbitrary: fc.double({ min: 0, max: 2_000, noNaN: true }) },
      { weight: 1, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.double({ min: -500, max: 0, noNaN: true }) },
    ),
    calls: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 500 })),
  });
  const steps = fc.array(step, { minLength: 1, maxLength: 60 });

  test('C2 L16 what is let in from any instant on is at most burst + rps × time, and one batch above the burst', () => {
    fc.assert(
      fc.property(rate, steps, (terms, sequence) => {
        let [bucket, nowMs, latestMs] = [full(terms, 1e6), 1e6, 1e6];
        const admitted: { atMs: number; calls: number }[] = [];
        for (const { passMs, calls } of sequence) {
          nowMs += passMs;
          latestMs = Math.max(latestMs, nowMs);
          const taken = take(bucket, terms, calls, nowMs);
          bucket = taken.bucket;
          if (taken.kind === 'taken') admitted.push({ atMs: latestMs, calls });
        }
        for (const [i, { atMs }] of admitted.entries()) {
          const later = admitted.slice(i);
          const total = later.reduce((sum, { calls }) => sum + calls, 0);
          // Only the last of them can still owe something: while one is paid off no other passes.
          const overhang = Math.max(0, (later.at(-1)?.calls ?? 0) - terms.burst);
          const seconds = ((later.at(-1)?.atMs ?? atMs) - atMs) / 1_000;
          expect(total).toBeLessThanOrEqual(terms.burst + (terms.perMs / 1_000) * seconds + overhang + 1e-3);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('C7 L15 no call is refused that the rate allows: after exactly waitMs, and after the Retry-After, the same call passes', () => {
    let refused = 0;
    fc.assert(
      fc.property(rate, steps, (terms, sequence) => {
        let [bucket, nowMs] = [full(terms, 1e6), 1e6];
        for (const { passMs, calls } of sequence) {
          nowMs += passMs;
          const taken = take(bucket, terms, calls, nowMs);
          bucket = taken.bucket;
          if (taken.kind === 'taken') continue;
          refused++;
          const { waitMs } = taken;
          expect(waitMs).toBeGreaterThan(0);
          expect(take(bucket, terms, calls, bucket.atMs + waitMs).kind).toBe('taken');
          expect(retryAfterSeconds(waitMs)).toBeGreaterThanOrEqual(Math.max(1, waitMs / 1_000));
          // And not a moment earlier than it says: a wait that is too long would be a lower rate.
          expect(take(bucket, terms, calls, bucket.atMs + waitMs - 1).kind).toBe('short');
        }
      }),
      { numRuns: 1_000 },
    );
    expect(refused).toBeGreaterThan(300);
  });
});

test('Retry-After is in whole seconds, and at least one', () => {
  expect([0, 999, 1_000, 1_000.001, 18_200].map(retryAfterSeconds)).toEqual([1, 1, 1, 2, 19]);
});
