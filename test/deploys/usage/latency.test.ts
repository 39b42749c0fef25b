import { describe, expect, test } from 'bun:test';
import { boundOf, latencyOf } from '../../../deploys/usage/estimates.ts';

const none = { within10Ms: 0, within50Ms: 0, within250Ms: 0, within1S: 0, slower: 0 };

test.each([
  [{ within10Ms: 100 }, 0.5, { kind: 'about', ms: 5 }],
  [{ within10Ms: 100 }, 1, { kind: 'about', ms: 10 }],
  [{ within10Ms: 50, within50Ms: 50 }, 0.5, { kind: 'about', ms: 10 }],
  [{ within10Ms: 50, within50Ms: 50 }, 0.95, { kind: 'about', ms: 46 }],
  [{ within250Ms: 10 }, 0.5, { kind: 'about', ms: 150 }],
  [{ within1S: 4 }, 0.25, { kind: 'about', ms: 438 }],
  [{ within10Ms: 90, slower: 10 }, 0.5, { kind: 'about', ms: 6 }],
  [{ within10Ms: 90, slower: 10 }, 0.95, { kind: 'over', ms: 1_000 }],
  [{ slower: 1 }, 0.01, { kind: 'over', ms: 1_000 }],
] as const)('of answers %j, the quantile %p is %j', (counts, quantile, latency) => {
  expect(latencyOf({ ...none, ...counts }, quantile)).toEqual(latency);
});
test('where nothing was answered there is none', () => expect(latencyOf(none, 0.5)).toBeUndefined());

describe('a bound that holds', () => {
  const none = { within10Ms: 0, within50Ms: 0, within250Ms: 0, within1S: 0, slower: 0 };
  test.each([
    [{ within10Ms: 1 }, 1, { kind: 'about', ms: 10 }],
    [{ within10Ms: 50, within50Ms: 50 }, 0.5, { kind: 'about', ms: 10 }],
    [{ within10Ms: 49, within50Ms: 51 }, 0.5, { kind: 'about', ms: 50 }],
    [{ within1S: 1, slower: 1 }, 0.5, { kind: 'about', ms: 1_000 }],
    [{ slower: 1 }, 0.5, { kind: 'over', ms: 1_000 }],
    [{}, 0.5, undefined],
  ] as const)('of %p at %p is %p', (counts, quantile, bound) => {
    expect(boundOf({ ...none, ...counts }, quantile)).toEqual(bound);
  });
});
