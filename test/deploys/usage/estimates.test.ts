import { expect, test } from 'bun:test';
import { boundOf, forecastOf } from '../../../deploys/usage/report.ts';

const HOUR_MS = 3_600_000;
/** Half past an hour: the pace is that of the time that has passed. */
const NOW_MS = 500_000 * HOUR_MS + HOUR_MS / 2;
const perHour =
  (credits: number) =>
  (_id: number, { fromHour, toHour }: Record<'fromHour' | 'toHour', number>) =>
    credits * (toHour - fromHour - 0.5);
const YOUNG = { createdAtMs: NOW_MS - 6 * HOUR_MS };
const account = { accountId: 1, creditsLeft: 7_200, createdAtMs: 0 };

test.each([
  ['lasts as long as its share of what was spent', perHour(100), {}, 72 * HOUR_MS, 72 * HOUR_MS],
  ['of a younger account lasts by its own time', () => 600, YOUNG, 72 * HOUR_MS, 72 * HOUR_MS],
  ['has no end where nothing is spent', () => 0, {}, undefined, undefined],
  ['has no end where as much was given back', () => -5, {}, undefined, undefined],
  ['lasts no time where it is nothing', perHour(1), { creditsLeft: 0 }, 0, 0],
] as const)('what is left %s', (_, spent, given, lastDay, lastWeek) => {
  expect(forecastOf({ spent }, { ...account, ...given }, NOW_MS)).toEqual({ lastDay, lastWeek });
});

test('a share of answers began for sure within the end of its class, or after a second', () => {
  const none = { within10Ms: 0, within50Ms: 0, within250Ms: 0, within1S: 0, slower: 0 };
  const about = (ms: number) => ({ kind: 'about', ms }) as const;
  const over = { kind: 'over', ms: 1_000 } as const;
  for (const [counts, quantile, bound] of [
    [{ within10Ms: 1 }, 1, about(10)],
    [{ within10Ms: 50, within50Ms: 50 }, 0.5, about(10)],
    [{ within10Ms: 49, within50Ms: 51 }, 0.5, about(50)],
    [{ within10Ms: 50, within50Ms: 50 }, 0.95, about(50)],
    [{ within250Ms: 10 }, 0.5, about(250)],
    [{ within1S: 1, slower: 1 }, 0.5, about(1_000)],
    [{ within10Ms: 90, slower: 10 }, 0.95, over],
    [{ slower: 1 }, 0.01, over],
  ] as const)
    expect(boundOf({ ...none, ...counts }, quantile)).toEqual(bound);
  expect(boundOf(none, 0.5)).toBeUndefined();
});
