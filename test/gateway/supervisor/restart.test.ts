import { expect, test } from 'bun:test';
import { afterDeath, CLEAN, type Life, STILLBORN_MAX, waitMsAfter } from '../../../gateway/workers.ts';

const recordAfter = (...lives: Life[]) => lives.reduce(afterDeath, CLEAN);
const old: Life = { listened: true, livedMs: 60_000 };
const young: Life = { listened: true, livedMs: 50 };
const stillborn: Life = { listened: false, livedMs: 50 };

test('a process that served is replaced at once', () => {
  expect(waitMsAfter(recordAfter(old))).toBe(0);
  expect(waitMsAfter(recordAfter(young, young, young, old))).toBe(0);
});

test('deaths in a row wait twice as long each time, up to ten seconds', () => {
  const waits = Array.from({ length: 10 }, (_, i) => waitMsAfter(recordAfter(...Array(i + 1).fill(young))));
  expect(waits).toEqual([0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
});

test.each([
  [9_999, 100],
  [10_000, 0],
])('a death %i ms after the start waits %i ms when the one before came soon', (livedMs, waitMs) => {
  expect(waitMsAfter(recordAfter(young, { listened: true, livedMs }))).toBe(waitMs);
});

test('a death before listening is soon however long it took, and only such deaths in a row are stillborn', () => {
  expect(waitMsAfter(recordAfter(stillborn, { listened: false, livedMs: 60_000 }))).toBe(100);
  expect(recordAfter(...Array(STILLBORN_MAX).fill(stillborn)).stillborn).toBe(STILLBORN_MAX);
  expect(recordAfter(stillborn, stillborn, young, stillborn).stillborn).toBe(1);
});
