import { expect, test } from 'bun:test';
import { nextStartMs } from '../../../deploys/watch/watcher.ts';

const turn = (nowMs: number, failures = 0, pollMs = 60_000) =>
  nextStartMs({ firstStartMs: 1_000, pollMs, nowMs, failures });

test.each([
  ['a reading that took no time', 1_000, 61_000],
  ['a reading that took 20 s', 21_000, 61_000],
  ['a reading that ended a moment before the next start', 60_999, 61_000],
  ['a reading that ended at the next start', 61_000, 121_000],
  ['a reading that overran a start, which is skipped', 62_000, 121_000],
])('starts stay on the grid of a minute after %s (spec 8)', (_, nowMs, startMs) => {
  expect(turn(nowMs)).toBe(startMs);
});

test.each([
  [1, 250],
  [2, 500],
  [3, 1_000],
  [6, 8_000],
  [7, 15_000],
  [1_000, 15_000],
])('after %i failures in a row the next try is %i ms away', (failures, waitMs) => {
  expect(turn(10_000, failures)).toBe(10_000 + waitMs);
});

test('a retry never delays the next start on the grid', () => {
  expect(turn(60_900, 5)).toBe(61_000);
  expect(turn(1_000, 7, 1_000)).toBe(2_000);
});

test('a thousand readings of any length drift by nothing', () => {
  let nowMs = 1_000;
  for (let i = 0; i < 1_000; i++) nowMs = turn(nowMs + ((i * 7_919) % 59_000));
  expect(nowMs).toBe(1_000 + 1_000 * 60_000);
});
