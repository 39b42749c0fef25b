import { expect, test } from 'bun:test';
import { createBreaker } from '../../../gateway/limits/lease-sync.ts';

function noted(answers: readonly boolean[], breaker = createBreaker(), nowMs = 10_000) {
  for (const answered of answers) breaker.note(answered, nowMs);
  return breaker;
}
const times = (count: number, answered: boolean) => Array.from({ length: count }, () => answered);

test.each([
  [19, 0, false],
  [20, 0, true],
  [10, 10, true],
  [10, 11, false],
  [400, 600, false],
])('%p failed messages beside %p answered ones in six seconds: open is %p', (failed, answered, open) => {
  expect(noted([...times(answered, true), ...times(failed, false)]).isOpen()).toBe(open);
});

test('what failed more than six seconds ago does not count', () => {
  const breaker = noted(times(19, false));
  noted([false], breaker, 16_600);
  expect(breaker.isOpen()).toBe(false);
});

test('while open one message a second is a probe, and the first answer closes it', () => {
  const breaker = noted(times(20, false));
  const sent: number[] = [];
  for (let ms = 10_000; ms <= 13_000; ms += 100) {
    if (!breaker.maySend(ms)) continue;
    sent.push(ms);
    breaker.noteSent(ms);
    breaker.note(false, ms);
  }
  expect(sent).toEqual([11_000, 12_000, 13_000]);
  expect(breaker.isOpen()).toBe(true);
  breaker.note(true, 13_050);
  expect(breaker.isOpen()).toBe(false);
  expect(breaker.maySend(13_060)).toBe(true);
  expect(noted(times(19, false), breaker, 13_100).isOpen()).toBe(false);
});

test('a turn in which nothing is due is no probe', () => {
  const breaker = noted(times(20, false));
  expect(breaker.maySend(11_000)).toBe(true);
  expect(breaker.maySend(11_020)).toBe(true);
  breaker.noteSent(11_020);
  expect(breaker.maySend(12_010)).toBe(false);
  expect(breaker.maySend(12_020)).toBe(true);
});
