import { describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { createHeldKeys } from '../../../shared/keys/lookup.ts';

const hashOf = (n: number) => createHash('sha256').update(String(n)).digest();

/** Holds a number under its own hash, as one that was read. */
function holding(newMax: number, keptMax: number) {
  const keys = createHeldKeys<number>(newMax, keptMax);
  const name = (n: number) => hashOf(n).toString('latin1');
  return {
    ...keys,
    has: (n: number) => keys.get(name(n)) === n,
    read: (n: number) => keys.set(name(n), hashOf(n), n),
    drop: (n: number) => keys.delete(name(n)),
  };
}

describe('keys in memory', () => {
  test('of those read once the latest stay, and no flood of them drives out what was read twice', () => {
    const { has, read } = holding(10, 10);
    for (let n = 0; n < 10; n++) read(n);
    for (let n = 10; n < 20; n++) read(n);
    for (let n = 0; n < 10; n++) read(n); // forgotten meanwhile, and read again
    for (let n = 100; n < 10_000; n++) read(n);
    expect(Array.from({ length: 10 }, (_, n) => has(n))).not.toContain(false);
    const flood = Array.from({ length: 9_900 }, (_, i) => has(100 + i));
    expect(flood.lastIndexOf(false)).toBe(9_900 - 10 - 1);
  });

  test('of those read twice the oldest goes when there is no room', () => {
    const { has, read } = holding(1, 3);
    for (const n of [1, 2, 3, 4]) {
      read(n);
      read(100 + n); // drives it out
      read(n);
    }
    expect([1, 2, 3, 4].map(has)).toEqual([false, true, true, true]);
  });

  test('are replaced where they are', () => {
    const keys = createHeldKeys<string>(2, 2);
    keys.set('one', hashOf(1), 'old');
    keys.set('one', hashOf(1), 'now');
    keys.set('two', hashOf(2), 'two');
    expect([keys.get('one'), keys.get('two')]).toEqual(['now', 'two']);
  });

  test('leave when they are deleted or idle, wherever they are', () => {
    const { has, read, drop, forget } = holding(2, 2);
    for (const n of [1, 2, 3, 4]) read(n);
    for (const n of [1, 2]) read(n);
    expect([1, 2, 3, 4].map(has)).toEqual([true, true, true, true]);
    drop(1);
    drop(3);
    forget((n) => n % 2 === 0);
    expect([1, 2, 3, 4].map(has)).toEqual([false, false, false, false]);
  });
});
