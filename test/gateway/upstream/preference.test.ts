import { describe, expect, test } from 'bun:test';
import { numberOf, preference } from '../../../gateway/upstream/backend.ts';

const NAMES = ['agave-1', 'agave-2', 'agave-3', 'agave-4'];
const ACCOUNTS = Array.from({ length: 4_000 }, (_, i) => i + 1);
const favourite = (account: number, names: readonly string[]) =>
  names.toSorted((a, b) => preference(account, numberOf(b)) - preference(account, numberOf(a)))[0];

describe('the preference of accounts for backends', () => {
  test('spreads accounts evenly', () => {
    for (const name of NAMES) {
      const share = ACCOUNTS.filter((account) => favourite(account, NAMES) === name).length / ACCOUNTS.length;
      expect(Math.abs(share - 0.25)).toBeLessThan(0.03);
    }
  });

  test('spreads the accounts of a backend that left evenly over the others, and moves nobody else', () => {
    const left = NAMES.slice(1);
    const moved = new Map<string | undefined, number>();
    for (const account of ACCOUNTS) {
      const [before, after] = [favourite(account, NAMES), favourite(account, left)];
      if (before !== NAMES[0]) expect(after).toBe(before);
      else moved.set(after, (moved.get(after) ?? 0) + 1);
    }
    const all = [...moved.values()].reduce((sum, each) => sum + each, 0);
    for (const name of left) expect(Math.abs((moved.get(name) ?? 0) / all - 1 / 3)).toBeLessThan(0.06);
  });

  test('is a whole number below 2^32, the same at every asking', () => {
    for (const account of [0, 1, 2 ** 31, 2 ** 40]) {
      const value = preference(account, numberOf('a'));
      expect(Number.isInteger(value) && value >= 0 && value < 2 ** 32).toBe(true);
      expect(preference(account, numberOf('a'))).toBe(value);
    }
  });
});
