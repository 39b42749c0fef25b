import { describe, expect, test } from 'bun:test';
import { boundOf, forecastOf, forecastText, lastsText, latencyOf } from '../../../deploys/usage/report.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Half past an hour: the pace is that of the time that has passed. */
const NOW_MS = 500_000 * HOUR_MS + HOUR_MS / 2;
const spending = (perHour: number, ago = 7 * 24) => ({
  spent: (_id: number, { fromHour, toHour }: { fromHour: number; toHour: number }) =>
    perHour * Math.max(0, Math.min(toHour - fromHour, ago) - 0.5),
});
const account = { accountId: 1, creditsLeft: 7_200, createdAtMs: 0 };

test('what is left lasts as long as its share of what was spent', () => {
  expect(forecastOf(spending(100), account, NOW_MS)).toEqual({
    lastDay: 72 * HOUR_MS,
    lastWeek: 72 * HOUR_MS,
  });
});
test('an account that is younger has spent it in its own time', () => {
  const { lastDay } = forecastOf(
    { spent: () => 600 },
    { ...account, createdAtMs: NOW_MS - 6 * HOUR_MS },
    NOW_MS,
  );
  expect(lastDay).toBe(72 * HOUR_MS);
});
test('where nothing is spent, or as much was given back, there is none', () => {
  expect(forecastOf({ spent: () => 0 }, account, NOW_MS)).toEqual({
    lastDay: undefined,
    lastWeek: undefined,
  });
  expect(forecastOf({ spent: () => -5 }, account, NOW_MS).lastDay).toBeUndefined();
});
test('with nothing left, it lasts no time', () => {
  expect(forecastOf(spending(1), { ...account, creditsLeft: 0 }, NOW_MS).lastDay).toBe(0);
});
test('is said in words, at the pace of the last 24 hours, else of the last week', () => {
  expect(forecastText({ lastDay: 3 * DAY_MS, lastWeek: DAY_MS })).toBe(
    "about 3 days left at the last 24 hours' rate",
  );
  expect(forecastText({ lastDay: undefined, lastWeek: HOUR_MS })).toBe(
    "about 1 hour left at the last 7 days' rate",
  );
  expect(forecastText({ lastDay: undefined, lastWeek: undefined })).toBeUndefined();
});
test.each([
  [0, 'less than an hour'],
  [HOUR_MS - 1, 'less than an hour'],
  [HOUR_MS, 'about 1 hour'],
  [2 * DAY_MS - 1, 'about 48 hours'],
  [2 * DAY_MS, 'about 2 days'],
  [365 * DAY_MS, 'more than a year'],
])('%i ms are %s', (ms, text) => expect(lastsText(ms)).toBe(text));

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
