import { expect, test } from 'bun:test';
import { keptOf, markdownOf } from '../../../../bench/self/compare/results.ts';
import type { Row } from '../../../../bench/self/compare/rounds.ts';
import { SCENARIOS } from '../../../../bench/self/compare/scenarios.ts';

const row = (subject: string, variant: string, cpuUs: readonly number[]): Row => ({
  subject,
  variant,
  rounds: cpuUs.map((value) => ({ cpuUs: value, callsPerSecond: 1e6 / value, rssMb: Number.NaN })),
});

function tableOf(name: string, rows: readonly Row[], base: string): readonly string[] {
  const scenario = SCENARIOS.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  return markdownOf(scenario, rows, base).split('\n');
}

test('a ratio is to the base of the same round, with the least and the most', () => {
  const rows = [
    row('direct', '', [Number.NaN]),
    row('nginx-lua', '', [10, 20, 40]),
    row('sluice', '', [30, 40, 60]),
  ];
  const lines = tableOf('small', rows, 'nginx-lua');
  expect(lines[4]).toStartWith('| direct |  |  |  |');
  expect(lines[5]).toStartWith('| nginx-lua | 20.0 |  | 50000 |');
  expect(lines[6]).toStartWith('| sluice | 40.0 | ×2.00 [1.50-3.00] | 25000 |');
  expect(lines.at(-2)).toContain('to nginx-lua');
});

test('where the base was not timed, ratios are to the first subject', () => {
  const lines = tableOf('small', [row('sluice A', '', [10]), row('sluice B', '', [5])], 'nginx-lua');
  expect(lines[5]).toContain('×0.50 [0.50-0.50]');
  expect(lines.at(-2)).toContain('to sluice A');
});

test('growth is told against the subject alone', () => {
  const rows = [row('a', '1 keys', [10]), row('a', '1000 keys', [12]), row('b', '1 keys', [20])];
  const lines = tableOf('keys', rows, 'own');
  expect(lines[5]).toContain('×1.20');
  expect(lines[6]).not.toContain('×');
});

test('figures are kept by round, without those that a subject does not have', () => {
  expect(keptOf([row('sluice', '', [10.123456, 20])])).toEqual([
    { subject: 'sluice', variant: '', figures: { cpuUs: [10.12, 20], callsPerSecond: [98_780, 50_000] } },
  ]);
});
