import { expect, test } from 'bun:test';
import { admitted, outcomes } from '../../bench/self/answers.ts';
import type { Finding } from '../../bench/self/soak/finding.ts';
import { cheapness, fairness, flood } from '../../bench/self/soak/flood.ts';
import { envelope, rate } from '../../bench/self/soak/rate.ts';
import { resumed, suspend } from '../../bench/self/soak/suspended.ts';

const signal = AbortSignal.timeout(120_000);

/** The short forms of `bun run soak`: real processes, sockets and stores, and bounds that a busy machine keeps too. */
const broken = (findings: readonly Finding[]) => findings.filter(({ holds }) => !holds);

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
  30_000,
);

test('L12 L14 a flood of refused calls costs the centre five messages a second and process, and starves none', async () => {
  const seen = await flood(20_000, 4, signal);
  expect(seen.seen.length).toBeGreaterThan(1_000);
  expect(broken([...cheapness(seen), ...fairness(seen, 0.6)])).toEqual([]);
}, 30_000);

test('L1 L11 by the ledger too; a process that stood still spends nothing that it held when it stopped', async () => {
  const seen = await suspend('sqlite', 3_000, signal);
  expect(broken(resumed(seen)).filter(({ what }) => what === 'admitted in all')).toEqual([]);
  // The others have its rate meanwhile.
  const still = seen.seen.filter(({ sentMs }) => sentMs > seen.fromMs + 1_500 && sentMs < seen.untilMs);
  expect(admitted(still)).toBeGreaterThan(0.5 * 100 * ((seen.untilMs - seen.fromMs) / 1_000 - 1.5));
}, 30_000);
