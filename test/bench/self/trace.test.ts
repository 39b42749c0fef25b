import { expect, test } from 'bun:test';
import { hitsFrom, linesRun, rangesOf } from '../../../bench/self/trace.ts';

const tracefile = (hits: readonly number[]) =>
  `TN:\nSF:gateway/a.ts\nFNF:1\n${hits.map((n, i) => `DA:${i + 1},${n}`).join('\n')}\nLF:9\nend_of_record\n` +
  'SF:gateway/b.ts\nDA:7,1\nend_of_record\n';

test('a line is on the way of a request if it ran for most of them', () => {
  const run = linesRun(hitsFrom(tracefile([1, 200, 205, 0])), hitsFrom(tracefile([1, 600, 210, 200])), 400);
  expect([...run]).toEqual([['gateway/a.ts', [2, 4]]]);
});

test('a file that was not loaded before counts', () => {
  expect(linesRun(new Map(), hitsFrom('SF:c.ts\nDA:3,400\n'), 400).get('c.ts')).toEqual([3]);
});

test('lines are told as ranges', () => {
  expect(rangesOf([3, 4, 5, 9, 11, 12])).toBe('3-5,9,11-12');
  expect(rangesOf([])).toBe('');
});
