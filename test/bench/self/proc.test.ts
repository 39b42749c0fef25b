import { describe, expect, test } from 'bun:test';
import {
  cpuSecondsFrom,
  cpuSecondsOf,
  descriptorsOf,
  gaugeFrom,
  memoryFrom,
  memoryOf,
} from '../../../bench/self/proc.ts';

const STATUS = `Name:\tbun
VmHWM:\t   99999 kB
VmRSS:\t   72012 kB
RssAnon:\t   28044 kB
RssFile:\t   43968 kB
`;

const statOf = (name: string) =>
  `4711 (${name}) S 1 4711 4711 0 -1 4194304 100 200 3 4 250 75 11 12 20 0 9 0 123456 789 1000 18446744073709551615`;

describe('what /proc says', () => {
  test('memory is in bytes, and the peak is not taken for what is resident', () => {
    expect(memoryFrom(STATUS)).toEqual({ residentBytes: 72_012 * 1_024, anonymousBytes: 28_044 * 1_024 });
  });

  test('a missing line is NaN and never 0', () => {
    expect(memoryFrom('Name:\tbun\n').residentBytes).toBeNaN();
  });

  test.each(['bun', 'a b', 'a) S 1 (b', ')'])(
    'CPU time is user and system, of a process named %p',
    (name) => {
      expect(cpuSecondsFrom(statOf(name))).toBe(3.25);
    },
  );

  test.if(process.platform === 'linux')('this process has memory, CPU time and descriptors', () => {
    const { residentBytes, anonymousBytes } = memoryOf(process.pid);
    expect(anonymousBytes).toBeGreaterThan(1_000_000);
    expect(residentBytes).toBeGreaterThan(anonymousBytes);
    expect(cpuSecondsOf(process.pid)).toBeGreaterThan(0);
    expect(descriptorsOf(process.pid)).toBeGreaterThan(2);
  });
});

describe('a gauge in Prometheus text', () => {
  const text =
    '# HELP calls x\n# TYPE calls gauge\ncalls{backend="a"} 2\ncalls{backend="b"} 3\ncalls_total 9\nup 1\n';

  test.each([
    ['calls', 5],
    ['up', 1],
    ['calls_total', 9],
  ])('%s is the sum over its labels, without those of longer names', (name, value) => {
    expect(gaugeFrom(text, name)).toBe(value);
  });

  test('one that is not there is NaN and never 0', () => expect(gaugeFrom(text, 'down')).toBeNaN());
});
