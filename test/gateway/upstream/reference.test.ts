import { describe, expect, test } from 'bun:test';
import { referenceSlot } from '../../../gateway/upstream/health.ts';

describe('the slot that backends are measured by', () => {
  test.each([
    [[], 0],
    [[0, 0], 0],
    [[500], 500],
    [[500, 0], 500],
    [[500, 499], 500],
    [[500, 100], 500],
    [[500, 499, 480], 500],
    [[516, 500, 499], 516],
  ])('of %p is %p', (tips, slot) => expect(referenceSlot(tips, 16)).toBe(slot));

  test('of three or more is not that of one that stands alone: it may lie', () => {
    expect(referenceSlot([9_000_000, 500, 499], 16)).toBe(500);
    expect(referenceSlot([517, 500, 499], 16)).toBe(500);
  });

  test('of two is the higher one while that can be believed', () => {
    expect(referenceSlot([1_524, 500], 16)).toBe(1_524);
    expect(referenceSlot([1_525, 500], 16)).toBe(500);
  });
});
