import { expect, test } from 'bun:test';
import { deadlinesMs } from '../../../gateway/methods/table.ts';

test.each([
  ['light', 30_000],
  ['meta', 30_000],
  ['write', 30_000],
  ['asset', 60_000],
  ['history', 60_000],
  ['scan', 108_000],
] as const)('the first byte of a %s call may take %p ms under the default idle limit', (kind, ms) => {
  expect(deadlinesMs(120_000)[kind]).toBe(ms);
});

test('a scan has four minutes where the idle limit allows it', () => {
  expect(deadlinesMs(1_000_000).scan).toBe(240_000);
});

test.each(['light', 'meta', 'write', 'asset', 'history', 'scan'] as const)(
  'a %s call ends before the listener would cut it, however short the idle limit',
  (kind) => {
    for (const idleMs of [1_000, 10_000, 60_000, 255_000])
      expect(deadlinesMs(idleMs)[kind]).toBeLessThan(idleMs);
  },
);
