import { describe, expect, test } from 'bun:test';
import { median, percentile, ratios, spread } from '../../../bench/self/statistics.ts';

describe('statistics of a bench', () => {
  test.each([
    [[3], 0.99, 3],
    [[4, 1, 3, 2], 0.5, 2],
    [[4, 1, 3, 2], 0.51, 3],
    [[4, 1, 3, 2], 0, 1],
    [[4, 1, 3, 2], 1, 4],
    [Array.from({ length: 100 }, (_, i) => 100 - i), 0.99, 99],
    [[10, 9], 1, 10],
  ])('of %p, the value at %p by nearest rank is %p', (values, share, value) => {
    expect(percentile(values, share)).toBe(value);
  });

  test.each([
    [[7], 7],
    [[9, 10, 1], 9],
    [[1, 4, 2, 10], 3],
  ])('the median of %p is %p', (values, value) => expect(median(values)).toBe(value));

  test('nothing measured is NaN and never 0', () => {
    expect(percentile([], 0.5)).toBeNaN();
    expect(median([])).toBeNaN();
    expect(spread([])).toBe('-');
  });

  test('values are left in the order they came in', () => {
    const values = [3, 1, 2];
    median(values);
    percentile(values, 0.5);
    expect(values).toEqual([3, 1, 2]);
  });

  test('a ratio is of the two of a pair, and of whole pairs only', () => {
    expect(ratios([2, 9, 5], [4, 3])).toEqual([0.5, 3]);
    expect(ratios([2], [4, 3])).toEqual([0.5]);
  });

  test('a spread shows median and range', () => {
    expect(spread([812, 790.4, 845])).toBe('812 (790-845)');
    expect(spread([0.5, 0.25], 2)).toBe('0.38 (0.25-0.50)');
  });
});
