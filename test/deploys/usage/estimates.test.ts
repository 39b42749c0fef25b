import { expect, test } from 'bun:test';
import { boundOf, forecastOf, forecastText } from '../../../deploys/usage/report.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Half past an hour: the pace is that of the time that has passed. */
const NOW_MS = 500_000 * HOUR_MS + HOUR_MS / 2;
const perHour =
  (credits: number) =>
  (_id: number, { fromHour, toHour }: Record<'fromHour' | 'toHour', number>) =>
    credits * (toHour - fromHour - 0.5);
const account = { accountId: 1, creditsLeft: 7_200, createdAtMs: 0 };

test.each([
  ['lasts as long as its share of what was spent', perHour(100), {}, 72 * HOUR_MS, 72 * HOUR_MS],
  [
    'of a younger account lasts by its own time',
    () => 600,
    { createdAtMs: NOW_MS - 6 * HOUR_MS },
    72 * HOUR_MS,
    72 * HOUR_MS,
  ],
  ['has no end where nothing is spent', () => 0, {}, undefined, undefined],
  ['has no end where as much was given back', () => -5, {}, undefined, undefined],
  ['lasts no time where it is nothing', perHour(1), { creditsLeft: 0 }, 0, 0],
] as const)('what is left %s', (_, spent, given, lastDay, lastWeek) => {
  expect(forecastOf({ spent }, { ...account, ...given }, NOW_MS)).toEqual({ lastDay, lastWeek });
});

test('it is said in words, at the rate of the last 24 hours, else of the last week', () => {
  const texts = [
    { lastDay: 3 * DAY_MS, lastWeek: DAY_MS },
    { lastDay: undefined, lastWeek: HOUR_MS },
    { lastDay: undefined, lastWeek: undefined },
  ].map(forecastText);
  expect(texts).toEqual([
    "about 3 days left at the last 24 hours' rate",
    "about 1 hour left at the last 7 days' rate",
    undefined,
  ]);
});
test.each([
  [HOUR_MS - 1, 'less than an hour'],
  [HOUR_MS, 'about 1 hour'],
  [2 * DAY_MS - 1, 'about 48 hours'],
  [2 * DAY_MS, 'about 2 days'],
  [365 * DAY_MS, 'more than a year'],
])('%i ms are %s', (ms, text) => {
  expect(forecastText({ lastDay: ms, lastWeek: 0 })).toStartWith(`${text} left`);
});

const none = { within10Ms: 0, within50Ms: 0, within250Ms: 0, within1S: 0, slower: 0 };

test.each([
  [{ within10Ms: 1 }, 1, 10],
  [{ within10Ms: 50, within50Ms: 50 }, 0.5, 10],
  [{ within10Ms: 49, within50Ms: 51 }, 0.5, 50],
  [{ within10Ms: 50, within50Ms: 50 }, 0.95, 50],
  [{ within250Ms: 10 }, 0.5, 250],
  [{ within1S: 1, slower: 1 }, 0.5, 1_000],
])('of answers %j, the share %p began within %p ms for sure', (counts, quantile, ms) => {
  expect(boundOf({ ...none, ...counts }, quantile)).toEqual({ kind: 'about', ms });
});
test('what took longer than a second is over it, and where nothing was answered there is no bound', () => {
  expect(boundOf({ ...none, within10Ms: 90, slower: 10 }, 0.95)).toEqual({ kind: 'over', ms: 1_000 });
  expect(boundOf({ ...none, slower: 1 }, 0.01)).toEqual({ kind: 'over', ms: 1_000 });
  expect(boundOf(none, 0.5)).toBeUndefined();
});
