import { describe, expect, test } from 'bun:test';
import { BENCH } from '../../../bench/self/compare.ts';
import { wrongAnswers } from '../../../bench/self/compare/checks.ts';
import type { Subject } from '../../../bench/self/compare/peers.ts';
import { keptOf, markdownOf } from '../../../bench/self/compare/results.ts';
import type { Row } from '../../../bench/self/compare/rounds.ts';
import { needsOf, SCENARIOS } from '../../../bench/self/compare/scenarios.ts';
import { valuesFrom } from '../../../bench/self/report.ts';

type Call = Readonly<{ id: unknown; method: string; params: readonly unknown[] }>;
/** What a planted fault does to a right answer. */
type Fault = 'none' | 'same id' | 'unordered' | 'cut' | 'free for all' | 'no rate' | 'no credits';

const KEYS = { paid: 'paid', slow: 'slow', spent: 'spent' };

function serve(fault: Fault) {
  let slow = 0;
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const key = request.headers.get('x-token') ?? '';
      if (!Object.keys(KEYS).includes(key) && fault !== 'free for all')
        return new Response('', { status: 401 });
      if (key === 'slow' && slow++ > 0 && fault !== 'no rate') return new Response('', { status: 429 });
      if (key === 'spent' && fault !== 'no credits') return new Response('', { status: 402 });
      const body: unknown = await request.json();
      if (!Array.isArray(body)) return answer(body as Call, fault); // what checks.ts sends
      const answers = body.map((call: Call) => valueOf(call, fault));
      return Response.json(fault === 'unordered' ? answers.toReversed() : answers);
    },
  });
}

function answer(call: Call, fault: Fault): Response {
  const text = JSON.stringify(valueOf(call, fault));
  return new Response(fault === 'cut' && call.method === 'getProgramAccounts' ? text.slice(1) : text);
}

function valueOf({ id, params }: Call, fault: Fault) {
  return { id: fault === 'same id' ? 1 : id, result: { value: { lamports: String(params[0]).length } } };
}

async function wrongWith(fault: Fault, checks: Subject['checks'] = 'keys and credits') {
  using direct = serve('none');
  using served = serve(fault);
  const subject: Subject = {
    name: 'x',
    version: '',
    checks,
    lacks: '',
    start: () => Promise.reject(new Error()),
  };
  return await wrongAnswers(subject, { port: served.port ?? 0 }, direct.port ?? 0, KEYS);
}

test('right answers are not complained about', async () => expect(await wrongWith('none')).toEqual([]));

test.each([
  ['same id', 'getAccountInfo'],
  ['unordered', 'a batch'],
  ['cut', 'a scan'],
  ['free for all', 'unknown key'],
  ['no rate', 'above the rate'],
  ['no credits', 'without credits'],
] satisfies [Fault, string][])('%s is found', async (fault, part) => {
  expect((await wrongWith(fault)).join()).toContain(part);
});

test('what a subject does not claim to check is not checked', async () => {
  expect(await wrongWith('no credits', 'keys')).toEqual([]);
  expect(await wrongWith('free for all', 'nothing')).toEqual([]);
});

const named = (name: string) => SCENARIOS.filter((scenario) => scenario.name === name);

describe('the arguments of bench/compare', () => {
  const valuesOf = (...args: readonly string[]) => {
    const read = valuesFrom(BENCH, args);
    if (read.kind !== 'run') return read;
    const { list, number, operands } = read.values;
    return { only: list('only'), subjects: list('subjects'), rounds: number('rounds'), operands };
  };

  test('without any, everything is timed', () => {
    const only = SCENARIOS.map(({ name }) => name);
    const subjects = ['direct', 'nginx', 'nginx-lua', 'haproxy', 'fastify', 'sluice'];
    expect(valuesOf()).toEqual({ only, subjects, rounds: 7, operands: [] });
  });

  test('name what is timed, in the order of the report', () => {
    const args = ['--only', 'batch,small', '--subjects', 'sluice, nginx', '--rounds', '3', 'a', 'b'];
    const expected = {
      only: ['small', 'batch'],
      subjects: ['nginx', 'sluice'],
      rounds: 3,
      operands: ['a', 'b'],
    };
    expect(valuesOf(...args)).toEqual(expected);
  });

  test.each([
    [['--only', 'smal'], '"smal"'],
    [['--subjects', ''], '""'],
    [['--rounds', '0'], '--rounds'],
    [['--speed', '1'], '--speed'],
  ])('%p is refused', (args, part) =>
    expect(valuesOf(...args)).toMatchObject({ kind: 'wrong', sentence: expect.stringContaining(part) }),
  );

  test('keys and backends are made for the scenarios that are timed', () => {
    expect(needsOf(named('small'))).toEqual({ keys: 1, backends: 1 });
    expect(needsOf([...named('keys'), ...named('backends')])).toEqual({ keys: 100_000, backends: 16 });
  });
});

describe('a report', () => {
  const row = (subject: string, variant: string, cpuUs: readonly number[]): Row => ({
    subject,
    variant,
    rounds: cpuUs.map((value) => ({ cpuUs: value, callsPerSecond: 1e6 / value, rssMb: Number.NaN })),
  });
  const tableOf = (name: string, rows: readonly Row[], base: string) =>
    named(name).flatMap((scenario) => markdownOf(scenario, rows, base).split('\n'));

  test('has ratios to the base of the same round, with the least and the most; without a base to the first subject', () => {
    const base = row('nginx-lua', '', [10, 20, 40]);
    const lines = tableOf(
      'small',
      [row('direct', '', [Number.NaN]), base, row('sluice', '', [30, 40, 60])],
      'nginx-lua',
    );
    expect(lines[4]).toStartWith('| direct |  |  |  |');
    expect(lines[5]).toStartWith('| nginx-lua | 20.0 |  | 50000 |');
    expect(lines[6]).toStartWith('| sluice | 40.0 | ×2.00 [1.50-3.00] | 25000 |');
    expect(lines.at(-2)).toContain('to nginx-lua');
    const two = tableOf('small', [row('sluice A', '', [10]), row('sluice B', '', [5])], 'nginx-lua');
    expect([two[5], two.at(-2)]).toEqual([
      expect.stringContaining('×0.50 [0.50-0.50]'),
      expect.stringContaining('to sluice A'),
    ]);
  });

  test('compares growth with the subject alone, and keeps figures by round without those that a subject lacks', () => {
    const rows = [row('a', '1 keys', [10]), row('a', '1000 keys', [12]), row('b', '1 keys', [20])];
    const [, , , , , grown, other] = tableOf('keys', rows, 'own');
    expect([grown, other]).toEqual([expect.stringContaining('×1.20'), expect.not.stringContaining('×')]);
    expect(keptOf([row('sluice', '', [10.123456, 20])])).toEqual([
      { subject: 'sluice', variant: '', figures: { cpuUs: [10.12, 20], callsPerSecond: [98_780, 50_000] } },
    ]);
  });
});
