import { expect, test } from 'bun:test';
import { rateFields } from '../../../gateway/respond/refusal.ts';

const state = (burst: number, rps: number, tokens = burst) => ({
  plan: { rps, burst, credits: undefined, batchMax: 1, scans: 1 },
  tokens,
});

test.each([
  [10, 5, '"calls";q=10;w=2'],
  [200, 100, '"calls";q=200;w=2'],
  [1, 1_000, '"calls";q=1;w=1'],
  [1, 0.1, '"calls";q=1;w=10'],
  [10, 3, '"calls";q=10;w=4'],
])('a burst of %p at %p a second has the policy %s', (burst, rps, policy) => {
  expect(rateFields(state(burst, rps))['ratelimit-policy']).toBe(policy);
});

test.each([
  [10, '"calls";r=10;t=1'],
  [9.999, '"calls";r=9;t=1'],
  [5, '"calls";r=5;t=1'],
  [4.9, '"calls";r=4;t=2'],
  [0.999, '"calls";r=0;t=2'],
  [0, '"calls";r=0;t=2'],
  [-90, '"calls";r=0;t=20'],
])(
  '%p of 10 tokens at 5 a second leave %s: never more than can be called, never less than the time to a full bucket',
  (tokens, left) => {
    expect(rateFields(state(10, 5, tokens)).ratelimit).toBe(left);
  },
);
