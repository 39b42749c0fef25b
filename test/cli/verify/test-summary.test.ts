import { describe, expect, test } from 'bun:test';
import { createTestSummary, failuresOf } from '../../../cli/verify/test-summary.ts';

function summaryOf(text: string) {
  const tests = createTestSummary();
  for (const line of text.split('\n')) tests.add(line);
  return tests.summary();
}

const GREEN = ' 5 pass\n 2 skip\n 1 todo\n 0 fail\n 12 expect() calls\nRan 8 tests across 2 files. [3.00ms]';

describe('the summary of bun test', () => {
  test('is read from its last lines', () => {
    expect(summaryOf(GREEN)).toEqual({ passed: 5, failed: 0, skipped: 3, ran: true, failures: [] });
  });
  test('is read through colours', () => {
    const coloured =
      '\u001b[0m\u001b[32m 5 pass\u001b[0m\n\u001b[31m 1 fail\u001b[0m\nRan 6 tests across 1 file. \u001b[2m[1ms]';
    expect(summaryOf(coloured)).toEqual({ passed: 5, failed: 1, skipped: 0, ran: true, failures: [] });
  });
  test('is not read from what tests print', () => {
    expect(summaryOf('(pass) 7 pass\nI saw 9 fail\n12 passed\n 3 passes')).toMatchObject({
      passed: 0,
      failed: 0,
    });
  });
});

test('failures are kept with their file and what was printed before them, each once', () => {
  const output = [
    'test/a.test.ts:\n(pass) one\nprinted\nerror: expect(1).toBe(2)\n(fail) two [1ms]\n(pass) three\n',
    'test/b.test.ts:\n\n# Unhandled error between tests\n-----\nerror: at once\n-----\n',
    'test/c.test.ts:\n(pass) four\n',
    '1 tests failed:\n(fail) two [1ms]\n',
    ' 3 pass\n 2 fail\n 1 error\nRan 5 tests across 3 files.',
  ].join('\n');
  expect(summaryOf(output).failures).toEqual([
    'test/a.test.ts:\nprinted\nerror: expect(1).toBe(2)\n(fail) two [1ms]',
    'test/b.test.ts:\n\n# Unhandled error between tests\n-----\nerror: at once\n-----\n',
  ]);
});

describe('failures', () => {
  test('are those that were counted', () => {
    expect(failuresOf(summaryOf(' 5 pass\n 2 fail\nRan 7 tests across 1 file.'), 1)).toBe(2);
  });
  test('of a green run are none', () => expect(failuresOf(summaryOf(GREEN), 0)).toBe(0));
  test('of a runner that crashed are never none', () => {
    expect(failuresOf(summaryOf(''), 1)).toBe(1);
    expect(failuresOf(summaryOf('(pass) a\n(pass) b'), null)).toBe(1);
    expect(failuresOf(summaryOf('(pass) a'), 0)).toBe(1);
    expect(failuresOf(summaryOf(' 5 pass\n 2 fail'), null)).toBe(3);
  });
  test('of a runner that counted none and left with an error are one', () => {
    expect(failuresOf(summaryOf(GREEN), 1)).toBe(1);
    expect(failuresOf(summaryOf(GREEN), null)).toBe(1);
  });
});
