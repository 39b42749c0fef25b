import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { comparisonOf } from '../../bench/comparison.ts';
import { pageOf } from '../../bench/page.ts';
import { Recorder, Times } from '../../bench/recorder.ts';
import { csvOf, FORMAT, type Result, resultFrom, shown, textOf } from '../../bench/result.ts';

/** A result of so many answers, each a millisecond longer than the one before. */
function resultOf(answers: number, more: Partial<Result> = {}): Result {
  const recorder = new Recorder('answer');
  for (let i = 1; i <= answers; i++) recorder.answered(i / 100, i, 10);
  recorder.failed(0.5, 4);
  recorder.count('200 result', answers);
  recorder.count('429 -429, "slow"');
  return {
    format: FORMAT,
    command: 'calls',
    endpoint: 'http://127.0.0.1:1',
    at: '2026-11-23T00:00:00.000Z',
    settings: { method: 'getSlot', connections: 16 },
    machine: '2 x CPU',
    stopped: false,
    seconds: 10,
    counted: 'requests',
    figures: [{ name: 'answered', value: answers / 10, unit: 'requests/s', better: 'more' }],
    timings: [recorder.all.timing()],
    outcomes: recorder.outcomes,
    run: recorder.seconds(10),
    notes: [],
    failures: [],
    ...more,
  };
}

describe('times', () => {
  test('have their percentiles to three digits, and their longest exactly', () => {
    const times = new Times('answer');
    for (let ms = 1; ms <= 1_000; ms++) times.note(ms);
    times.note(1_234.567);
    const { p50, p90, p99, p999, max, count } = times.timing();
    expect([p50 / 501, p90 / 901, p99 / 991, p999 / 1_000]).toEqual(Array(4).fill(expect.closeTo(1, 2)));
    expect([max, count]).toEqual([1_234.567, 1_001]);
    expect(times.at(1)).toBe(max);
  });

  test('of none are 0, and odd ones are taken', () => {
    const times = new Times('answer');
    expect(times.timing()).toMatchObject({ count: 0, p50: 0, p999: 0, max: 0, mean: 0, bars: [] });
    for (const ms of [-1, 0, 0.0001, 1e12]) times.note(ms);
    expect(times.timing()).toMatchObject({ count: 4, p50: 0.001, max: 3_600_000 });
  });

  test('have a bar for each range, which together hold all', () => {
    const { bars, count } = resultOf(1_000).timings[0] ?? { bars: [], count: 0 };
    expect(bars.reduce((sum, [, n]) => sum + n, 0)).toBe(count);
    expect(bars.map(([upToMs]) => upToMs)).toEqual(bars.map(([upToMs]) => upToMs).toSorted((a, b) => a - b));
  });
});

describe('the page', () => {
  const dataOf = (result: Result) =>
    JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/.exec(pageOf(result))?.[1] ?? '');

  test.each([
    ['requests', 10.4, 10],
    ['accounts', 10.4, 10],
    // Whose last ones land when nothing is sent any more.
    ['transfers', 10.4, 11],
    ['transfers', 0.4, 1],
    ['requests', 0.4, 1],
  ] as const)('of %s in %d seconds has a chart of %i', (counted, seconds, rows) => {
    const recorder = new Recorder('answer');
    for (let atMs = 50; atMs < 1_000 * seconds; atMs += 100) recorder.answered(atMs / 1_000, 3, 10);
    const run = recorder.seconds(seconds);
    const { run: shownRun } = dataOf(resultOf(1, { counted, seconds, run }));
    expect(shownRun).toEqual(run.slice(0, rows));
    expect(shownRun).toHaveLength(rows);
  });

  test('has the bars of its histogram below the upper edges that the axis names', () => {
    const drawn: { at: string; data: number[][]; bars: unknown }[] = [];
    class Plot {
      static paths = { bars: (options: object) => options };
      constructor(options: { series: { paths?: object }[] }, data: number[][], { id }: { id: string }) {
        drawn.push({ at: id, data, bars: options.series[1]?.paths });
      }
    }
    const element = (id: string) => ({
      id,
      textContent: JSON.stringify(dataOf(resultOf(1_000))),
      clientWidth: 300,
      style: {},
      append: () => undefined,
    });
    const page = { getElementById: element, createElement: element, body: element('body') };
    const listens = { addEventListener: () => undefined };
    const script = readFileSync(join(import.meta.dir, '../../bench/page/charts.js'), 'utf8');
    // As the browser runs it, but for the library that draws.
    const names = ['document', 'uPlot', 'getComputedStyle', 'matchMedia', 'ResizeObserver'];
    new Function(...names, script)(
      page,
      Plot,
      () => listens,
      () => listens,
      class {
        observe = () => undefined;
      },
    );
    const histogram = drawn.find(({ at }) => at === 'histogram');
    expect(histogram?.bars).toEqual({ size: [0.9], align: -1 });
    const [edges = [], counts = []] = histogram?.data ?? [];
    // Of times from 1 to 1,000 ms, those above 501.2 and up to 630.96 stand at the place of the latter.
    expect(counts[edges.indexOf(28)]).toBe(630 - 501);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1_000);
  });
});

test('every second of a run has a row, the empty ones too', () => {
  const recorder = new Recorder('answer');
  recorder.answered(0.2, 5, 10);
  recorder.answered(2.5, 7, 20);
  recorder.failed(2.6);
  const about = (ms: number) => expect.closeTo(ms, 1);
  const rows: unknown[] = [
    { second: 0, answers: 1, failures: 0, bytes: 10, p50: about(5), p99: about(5) },
    { second: 1, answers: 0, failures: 0, bytes: 0, p50: null, p99: null },
    { second: 2, answers: 1, failures: 1, bytes: 20, p50: about(7), p99: about(7) },
  ];
  expect<unknown>(recorder.seconds(3)).toEqual(rows);
});

test('an endpoint that answers with ever other codes does not grow a result', () => {
  const recorder = new Recorder('answer');
  for (let i = 0; i < 1_000; i++) recorder.count(`200 ${i}`);
  expect(Object.keys(recorder.outcomes)).toHaveLength(51);
  expect(recorder.outcomes['others']).toBe(950);
});

test('the CSV has four columns, whatever stands in them', () => {
  const lines = csvOf(resultOf(100)).split('\r\n');
  expect(lines.at(0)).toBe('kind,name,figure,value');
  expect(lines.at(-1)).toBe('');
  expect(lines).toContain('figure,answered,requests/s,10');
  expect(lines).toContain('outcome,"429 -429, ""slow""",count,1');
  expect(lines.filter((line) => line.startsWith('second,0,'))).toHaveLength(5);
});

test('the text says what failed, and that it was stopped', () => {
  const text = textOf(resultOf(10, { stopped: true, failures: ['No answer.'] }));
  expect(text).toContain('10 s, stopped before its end');
  expect(text).toContain('FAILED: No answer.');
  expect(text).not.toContain('NaN');
});

test.each([
  [0, '0'],
  [1_234, '1,234'],
  [0.01234, '0.012'],
  [3.14159, '3.14'],
  [31.4159, '31.4'],
  [314.159, '314'],
])('%d is shown as %s', (value, text) => expect(shown(value)).toBe(text));

describe('a comparison', () => {
  test('gives ratios of what both have, and which is better', () => {
    const compared = comparisonOf(resultOf(1_000), resultOf(2_000, { machine: '4 x CPU' }));
    if (compared.kind !== 'ratios') throw new Error(compared.sentences.join());
    expect(compared.text).toMatch(/answered, requests\/s +100 +200 +x2\.00 +better/);
    expect(compared.text).toMatch(/answer p50, ms +500 +1,000 +x2\.00 +worse/);
    expect(compared.text).toContain('A was measured on 2 x CPU, B on 4 x CPU.');
  });

  test('from or to nothing has no ratio, and says all the same which is better', () => {
    const failed = (value: number) =>
      resultOf(10, { figures: [{ name: 'failed', value, unit: '%', better: 'less' }] });
    const compared = (a: number, b: number) => {
      const comparison = comparisonOf(failed(a), failed(b));
      return comparison.kind === 'ratios' ? comparison.text : '';
    };
    expect(compared(0, 40)).toMatch(/failed, % +0 +40 +- +worse/);
    expect(compared(40, 0)).toMatch(/failed, % +40 +0 +x0\.00 +better/);
    expect(compared(0, 0)).toMatch(/failed, % +0 +0 +-\n/);
  });

  test('leaves out percentiles that so few answers cannot show', () => {
    const compared = comparisonOf(resultOf(50), resultOf(50));
    expect(compared.kind === 'ratios' && compared.text).toContain('answer p90');
    expect(compared.kind === 'ratios' && compared.text).not.toContain('answer p99');
  });

  test('is refused for what was not measured alike, with every difference', () => {
    const other = resultOf(10, { settings: { method: 'getSlot', connections: 4, size: 20 } });
    expect(comparisonOf(resultOf(10), other)).toEqual({
      kind: 'unlike',
      sentences: ['connections: 16 in A, 4 in B.', 'size: none in A, 20 in B.'],
    });
    expect(comparisonOf(resultOf(10), resultOf(10, { command: 'batch' }))).toEqual({
      kind: 'unlike',
      sentences: ['A is of calls, B of batch.'],
    });
  });

  test('is refused for files that are something else', () => {
    for (const text of ['', '{}', 'null', '{"format":"sluice-bench 0"}'])
      expect(resultFrom(text)).toStartWith('is no result of this bench');
    expect(resultFrom(JSON.stringify(resultOf(1)))).toMatchObject({ command: 'calls' });
  });
});
