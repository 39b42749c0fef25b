import { expect, test } from 'bun:test';
import { Pace } from '../../../gateway/limits/rate-lease.ts';

test('lets three messages go at once after a rest, then one an interval', () => {
  const pace = new Pace();
  const sent: number[] = [];
  for (let ms = 0; ms < 1_000; ms++) {
    if (pace.nextMs(100, ms) > ms) continue;
    pace.note(100, ms);
    sent.push(ms);
  }
  expect(sent).toEqual([0, 1, 2, 102, 202, 302, 402, 502, 602, 702, 802, 902]);
});

test('gives when the next one may go', () => {
  const pace = new Pace();
  for (const ms of [0, 0, 0]) pace.note(100, ms);
  expect(pace.nextMs(100, 30)).toBe(100);
  expect(pace.nextMs(100, 130)).toBe(130);
});

test('owes nothing for messages of longer intervals when the interval gets shorter', () => {
  const pace = new Pace();
  for (let i = 0; i < 9; i++) pace.note(500, i);
  expect(pace.nextMs(30, 20)).toBe(38);
});
