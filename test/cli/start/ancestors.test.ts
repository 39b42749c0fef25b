import { describe, expect, test } from 'bun:test';
import { isStanding, type ProcessTree, runnersOf } from '../../../cli/start/ancestors.ts';

/** A chain of processes from `start` upwards, as [pid, parent]; `node` are those that run node. */
function treeOf(parents: Readonly<Record<number, number>>, ...node: readonly number[]): ProcessTree {
  return { parentOf: (pid) => parents[pid], isNode: (pid) => node.includes(pid) };
}

describe('the runners above start', () => {
  test('are bun run alone, whatever shell is above it', () => {
    expect(runnersOf(9, false, treeOf({ 9: 8, 8: 7, 7: 1 }))).toEqual([8]);
  });
  test('under npx are bun run, a shell and npx itself', () => {
    const tree = treeOf({ 9: 8, 8: 7, 7: 6, 6: 5, 5: 1 }, 6);
    expect(runnersOf(9, true, tree)).toEqual([8, 7, 6]);
  });
  test('under npx without a shell are bun run and npx', () => {
    expect(runnersOf(9, true, treeOf({ 9: 8, 8: 6, 6: 5 }, 6))).toEqual([8, 6]);
  });
  test('are bun run alone where npx cannot be told from its surroundings', () => {
    expect(runnersOf(9, true, treeOf({ 9: 8, 8: 7, 7: 6, 6: 5, 5: 4 }))).toEqual([8]);
    expect(runnersOf(9, true, treeOf({ 9: 8 }))).toEqual([8]);
  });
});

describe('the chain', () => {
  const whole = { 9: 8, 8: 7, 7: 6, 6: 1 };
  test('stands while every parent is the one it was', () => {
    expect(isStanding(9, [8, 7, 6], treeOf(whole))).toBe(true);
  });
  test.each([
    ['bun run', { ...whole, 9: 1 }],
    ['the shell', { ...whole, 8: 1 }],
    ['npx', { ...whole, 7: 1 }],
  ])('falls when %s is gone', (_, parents) => expect(isStanding(9, [8, 7, 6], treeOf(parents))).toBe(false));
  test('above the runners does not matter: a shell may go', () => {
    expect(isStanding(9, [8, 7, 6], treeOf({ ...whole, 6: 99 }))).toBe(true);
  });
});
