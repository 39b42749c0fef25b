import { expect, test } from 'bun:test';
import { newPace, nextSendMs, noteSend } from '../../../gateway/limits/lease.ts';

test('lets three messages go at once after a rest, then one an interval', () => {
  const pace = newPace();
  const sent: number[] = [];
  for (let ms = 0; ms < 1_000; ms++) {
    if (nextSendMs(pace, 100, ms) > ms) continue;
    noteSend(pace, 100, ms);
    sent.push(ms);
  }
  expect(sent).toEqual([0, 1, 2, 102, 202, 302, 402, 502, 602, 702, 802, 902]);
});

test('gives when the next one may go', () => {
  const pace = newPace();
  for (const ms of [0, 0, 0]) noteSend(pace, 100, ms);
  expect(nextSendMs(pace, 100, 30)).toBe(100);
  expect(nextSendMs(pace, 100, 130)).toBe(130);
});

test('owes nothing for messages of longer intervals when the interval gets shorter', () => {
  const pace = newPace();
  for (let i = 0; i < 9; i++) noteSend(pace, 500, i);
  expect(nextSendMs(pace, 30, 20)).toBe(38);
});
