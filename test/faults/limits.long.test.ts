import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { admitted, outcomes, within } from '../../bench/self/answers.ts';
import type { Finding } from '../../bench/self/soak/finding.ts';
import { cheapness, fairness, flood } from '../../bench/self/soak/flood.ts';
import { exactness, storm } from '../../bench/self/soak/kills.ts';
import { honesty, OUTAGES, type Outage, outage } from '../../bench/self/soak/outage.ts';
import { envelope, rate } from '../../bench/self/soak/rate.ts';
import { CENTRES } from '../../bench/self/soak/subject.ts';
import { resumed, suspend } from '../../bench/self/soak/suspended.ts';

setDefaultTimeout(60_000);

/** The short forms of `bun run soak`: real processes, sockets and stores, and bounds that a busy machine keeps too. */
const broken = (findings: readonly Finding[]) => findings.filter(({ holds }) => !holds);
const signal = AbortSignal.timeout(300_000);

test.each(CENTRES)(
  'L7 L18 D1 D2 after ten kill -9 under load ledger, journals and usage agree to the unit, and 402 comes at the last credit: %s',
  async (centre) => {
    const load = { processes: 4, kills: 10, everyMs: 500, perSecond: 400, credits: 14_000 };
    const seen = await storm({ centre, ...load }, signal);
    expect(seen.kills).toBe(10);
    expect(broken(exactness(seen))).toEqual([]);
  },
);

test.each([
  ['L1 C1 C5 a hundred a second by a Redis', 'redis', 100],
  ['L3 C1 five a second', 'sqlite', 5],
] as const)(
  'four processes at ten times the rate let in one burst, the rate and their debts: %s',
  async (_, centre, rps) => {
    const load = { centre, rps, seconds: 4 };
    const answers = await rate(load, signal);
    expect(broken(envelope(answers, load))).toEqual([]);
    expect(admitted(answers)).toBeGreaterThan(0.5 * rps * load.seconds);
    // A refusal for every call above the rate: all were answered.
    expect((outcomes(answers)['over-rate'] ?? 0) + admitted(answers)).toBe(answers.length);
  },
);

test('L12 L14 a flood of refused calls costs the centre five messages a second and process, and starves none', async () => {
  const seen = await flood(20_000, 4, signal);
  expect(seen.seen.length).toBeGreaterThan(1_000);
  expect(broken([...cheapness(seen), ...fairness(seen, 0.6)])).toEqual([]);
});

test('L1 L11 by the ledger too; a process that stood still spends nothing that it held when it stopped', async () => {
  const seen = await suspend('sqlite', 3_000, signal);
  expect(broken(resumed(seen)).filter(({ what }) => what === 'admitted in all')).toEqual([]);
  // The others get its rate in that time.
  const still = seen.seen.filter(({ sentMs }) => sentMs > seen.fromMs + 1_500 && sentMs < seen.untilMs);
  expect(admitted(still)).toBeGreaterThan(0.5 * 100 * ((seen.untilMs - seen.fromMs) / 1_000 - 1.5));
});

describe('outages, all at once, each on a Redis and processes of its own', () => {
  const outages = new Map<string, Promise<Outage>>();
  beforeAll(() => {
    for (const kind of OUTAGES) {
      const seen = outage(kind, { quiet: 4, out: 3, after: 6 }, signal);
      seen.catch(() => undefined); // reported by its test
      outages.set(kind, seen);
    }
  });

  test.each(OUTAGES)(
    'L6 C6 E4 while Redis is %s a plan keeps its rate, a trial is 503 and never 402, and all is well again without a restart',
    async (kind) => {
      const seen = await outages.get(kind);
      if (seen === undefined) throw new Error(`${kind} was not started`);
      expect(broken(honesty(seen))).toEqual([]);
      const during = admitted(within(seen.paid, seen.fromMs, seen.untilMs));
      expect(during).toBeGreaterThan((0.5 * 100 * (seen.untilMs - seen.fromMs)) / 1_000);
    },
  );
});
