import { expect, test } from 'bun:test';
import { createMinutes } from '../../../deploys/usage/minutes.ts';

const MINUTE_MS = 60_000;
const NOW = 30_000_000;
const nowMs = NOW * MINUTE_MS + 59_999;
const one = { calls: 1, refused: 2, errors: 3 };

test('an hour is sixty minutes, the last of them the one that is now, with zeros where nothing was done', () => {
  const minutes = createMinutes();
  minutes.add(1, NOW, one);
  minutes.add(1, NOW - 59, one);
  const hour = minutes.of(1, nowMs);
  expect(hour.map(({ minute }) => minute)).toEqual(Array.from({ length: 60 }, (_, i) => NOW - 59 + i));
  expect([hour[0], hour.at(-1)]).toEqual([
    { minute: NOW - 59, ...one },
    { minute: NOW, ...one },
  ]);
  expect(hour.slice(1, -1).every(({ calls, refused, errors }) => calls + refused + errors === 0)).toBe(true);
});
test('a minute leaves when its hour is over, and leaves nothing to the one that takes its place', () => {
  const minutes = createMinutes();
  minutes.add(1, NOW - 60, one);
  expect(minutes.of(1, nowMs).some(({ calls }) => calls > 0)).toBe(false);
  minutes.add(1, NOW, { calls: 5, refused: 0, errors: 0 });
  expect(minutes.of(1, nowMs).at(-1)).toEqual({ minute: NOW, calls: 5, refused: 0, errors: 0 });
  minutes.add(1, NOW - 60, one);
  expect(minutes.of(1, nowMs).at(-1)?.calls).toBe(5);
});
test('accounts are apart, and together in the totals', () => {
  const minutes = createMinutes();
  minutes.add(1, NOW, one);
  minutes.add(2, NOW, one);
  minutes.add(2, NOW, one);
  expect([1, 2, 3].map((id) => minutes.of(id, nowMs).at(-1)?.calls)).toEqual([1, 2, 0]);
  expect(minutes.totals(nowMs).at(-1)).toEqual({ minute: NOW, calls: 3, refused: 6, errors: 9 });
});
test('no more accounts are held than may be, until some are idle; the totals count all', () => {
  const minutes = createMinutes();
  for (let id = 1; id <= 20_001; id++) minutes.add(id, NOW, one);
  const of = (at: number) => minutes.of(20_001, at).at(-1)?.calls;
  expect([of(nowMs), minutes.totals(nowMs).at(-1)?.calls]).toEqual([0, 20_001]);
  minutes.forgetIdle(nowMs + 59 * MINUTE_MS);
  minutes.add(20_001, NOW + 59, one);
  expect(of(nowMs + 59 * MINUTE_MS)).toBe(0);
  minutes.forgetIdle(nowMs + 60 * MINUTE_MS);
  minutes.add(20_001, NOW + 60, one);
  expect(of(nowMs + 60 * MINUTE_MS)).toBe(1);
});
