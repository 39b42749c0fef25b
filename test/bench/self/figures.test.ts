import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  admitted,
  type Answer,
  answersFrom,
  mostWithin,
  type Outcome,
  OUTCOMES,
  outcomes,
  slowMs,
  within,
} from '../../../bench/self/load.ts';
import {
  cpuSecondsFrom,
  cpuSecondsOf,
  descriptorsOf,
  gaugeFrom,
  memoryFrom,
  memoryOf,
} from '../../../bench/self/proc.ts';
import { bodyBytes, programAccounts } from '../../../bench/self/program-accounts.ts';
import { atLeast, atMost, between, said } from '../../../bench/self/finding.ts';
import { scenarios } from '../../../bench/self/soak/scenarios.ts';
import { median, percentile, ratios, spread } from '../../../bench/self/statistics.ts';
import { tableOf } from '../../../bench/table.ts';
import { ROOT } from '../../started/process.ts';

test('a percentile is by nearest rank, a median the middle, and nothing measured is NaN and never 0', () => {
  const values = [4, 1, 3, 2];
  expect([0, 0.5, 0.51, 1].map((share) => percentile(values, share))).toEqual([1, 2, 3, 4]);
  expect([median([9, 10, 1]), median(values), percentile([], 0.5), median([])]).toEqual([9, 2.5, NaN, NaN]);
  expect(values).toEqual([4, 1, 3, 2]);
  expect([spread([812, 790.4, 845]), spread([0.5, 0.25], 2), spread([])]).toEqual([
    '812 (790-845)',
    '0.38 (0.25-0.50)',
    '-',
  ]);
  expect([ratios([2, 9, 5], [4, 3]), ratios([2], [4, 3])]).toEqual([[0.5, 3], [0.5]]);
});

test('columns of a table are as wide as their widest cell, figures to the right, and a figure that is none is no NaN', () => {
  const rows = [
    ['way', 'MB/s', ''],
    ['direct', '4000', '1.00'],
    ['sluice', 'NaN', 'BANANA'],
  ];
  expect(tableOf(rows)).toBe('way     MB/s\ndirect  4000    1.00\nsluice     -  BANANA');
  expect(tableOf([])).toBe('');
});

test('memory, CPU time and gauges are read from what /proc and the metrics say; what is missing is NaN', () => {
  const status = 'Name:\tbun\nVmHWM:\t   99999 kB\nVmRSS:\t   72012 kB\nRssAnon:\t   28044 kB\n';
  expect(memoryFrom(status)).toEqual({ residentBytes: 72_012 * 1_024, anonymousBytes: 28_044 * 1_024 });
  expect(memoryFrom('Name:\tbun\n').residentBytes).toBeNaN();
  for (const name of ['bun', 'a) S 1 (b'])
    expect(
      cpuSecondsFrom(
        `4711 (${name}) S 1 4711 4711 0 -1 4194304 100 200 3 4 250 75 11 12 20 0 9 0 123456 789 1000`,
      ),
    ).toBe(3.25);
  const gauges = 'calls{backend="a"} 2\ncalls{backend="b"} 3\ncalls_total 9\nup 1\n';
  expect(['calls', 'up', 'down'].map((name) => gaugeFrom(gauges, name))).toEqual([5, 1, NaN]);
  if (process.platform !== 'linux') return;
  expect(memoryOf(process.pid).residentBytes).toBeGreaterThan(memoryOf(process.pid).anonymousBytes);
  expect(Math.min(cpuSecondsOf(process.pid), descriptorsOf(process.pid))).toBeGreaterThan(0);
});

test('answers are put in the order of their sending, and counted by outcome and by span', () => {
  const answer = (sentMs: number, outcome: Outcome = 'answered', tookMs = 1): Answer => ({
    sentMs,
    tookMs,
    outcome,
    body: 0,
  });
  expect(answersFrom(Float32Array.of(20, 5, OUTCOMES.indexOf('lost'), 1, 10, 2, 0, 0))).toEqual([
    { sentMs: 10, tookMs: 2, outcome: 'answered', body: 0 },
    { sentMs: 20, tookMs: 5, outcome: 'lost', body: 1 },
  ]);
  expect(
    within(
      [9, 10, 19, 20].map((ms) => answer(ms)),
      10,
      20,
    ),
  ).toHaveLength(2);
  const mixed = [answer(1), answer(2, 'over-rate'), answer(3, 'answered', 4), answer(4, 'lost', 99)];
  expect([outcomes(mixed), admitted(mixed), slowMs(mixed)]).toEqual([
    { answered: 2, 'over-rate': 1, lost: 1 },
    2,
    4,
  ]);
  const bursts = [0, 1, 2, 3, 100, 109, 110, 118].map((ms) => answer(ms));
  expect([mostWithin(bursts, 10, 0), mostWithin(bursts, 10, 50)]).toEqual([4, 3]);
});

describe("the bench's getProgramAccounts answer", () => {
  const wire = (bytesMin: number, framing: 'length' | 'chunked') => {
    const text = Buffer.concat([...programAccounts(bytesMin, '"seven"', framing)]).toString('latin1');
    const end = text.indexOf('\r\n\r\n');
    return { head: text.slice(0, end), body: text.slice(end + 4) };
  };

  test.each([1, 2_500_000])('of %p bytes is JSON of token accounts with its id and length', (bytesMin) => {
    const { head, body } = wire(bytesMin, 'length');
    expect([bodyBytes(bytesMin, '"seven"'), body.length >= bytesMin]).toEqual([body.length, true]);
    expect(head).toContain(`content-length: ${body.length}`);
    const { result, id } = JSON.parse(body);
    const { pubkey, account } = result.at(-1);
    expect([id, Buffer.from(account.data[0], 'base64').length]).toEqual(['seven', 165]);
    expect(pubkey).toMatch(/^[1-9A-HJ-NP-Za-km-z]{43,44}$/);
  });

  test('is the same bytes in chunks, ended by the last one', () => {
    const { head, body: chunks } = wire(2_500_000, 'chunked');
    expect(head).toEndWith('transfer-encoding: chunked');
    let [body, at] = ['', 0];
    for (let size = -1; size !== 0;) {
      const line = chunks.indexOf('\r\n', at);
      size = Number.parseInt(chunks.slice(at, line), 16);
      body += chunks.slice(line + 2, line + 2 + size);
      at = line + 4 + size;
    }
    expect([at, body === wire(2_500_000, 'length').body]).toEqual([chunks.length, true]);
  });
});

describe('a soak', () => {
  test('holds a figure on its bound, and not one beyond', () => {
    expect([3, 3.1, NaN].map((value) => atMost('x', value, 3).holds)).toEqual([true, false, false]);
    expect([3, 2.9].map((value) => atLeast('x', value, 3).holds)).toEqual([true, false]);
    expect([1, 2.1].map((value) => between('x', value, 1, 2).holds)).toEqual([true, false]);
    expect(between('x', 1.25, 1, 2, 1)).toMatchObject({ bounds: '1.0 - 2.0', measured: '1.3' });
    expect(said('x', '7')).toMatchObject({ bounds: '', measured: '7', holds: true });
  });

  test('has a name of its own for every scenario, and the page of faults names each by its beginning, and no other', () => {
    const page = readFileSync(join(ROOT, 'test/faults/README.md'), 'utf8');
    const soaked = [...page.matchAll(/^\| [A-HLMP]\d+ +\|[^|]*\|[^|]+\|([^|]+)\|$/gm)];
    const beginnings = soaked.flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
    );
    const names = scenarios(30, false).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(beginnings.filter((beginning) => !names.some((name) => name.startsWith(beginning)))).toEqual([]);
    expect(names.filter((name) => !beginnings.some((beginning) => name.startsWith(beginning)))).toEqual([]);
  });

  test.each([
    [['--only', 'no-such-scenario'], 1],
    [['--form', 'brief'], 2],
  ])('of nothing, or with a mistake, is no success: %p', async (words, code) => {
    const child = Bun.spawn([process.execPath, 'bench/self/soak.ts', ...words], {
      stdout: 'ignore',
      stderr: 'ignore',
    });
    expect(await child.exited).toBe(code);
  });
});
