import { expect, test } from 'bun:test';
import {
  admitted,
  type Answer,
  answersFrom,
  mostWithin,
  type Outcome,
  OUTCOMES,
  outcomes,
  slowMs,
  within,
} from '../../../bench/self/answers.ts';

const answer = (sentMs: number, outcome: Outcome = 'answered', tookMs = 1): Answer => ({
  sentMs,
  tookMs,
  outcome,
  body: 0,
});

test('numbers become answers in the order of their sending', () => {
  const lost = OUTCOMES.indexOf('lost');
  expect(answersFrom(Float32Array.of(20, 5, lost, 1, 10, 2, 0, 0))).toEqual([
    { sentMs: 10, tookMs: 2, outcome: 'answered', body: 0 },
    { sentMs: 20, tookMs: 5, outcome: 'lost', body: 1 },
  ]);
});

test('a span has its beginning and not its end', () => {
  expect(within([answer(9), answer(10), answer(19), answer(20)], 10, 20)).toHaveLength(2);
});

test('outcomes are counted, and only what was answered was let in', () => {
  const answers = [answer(1), answer(2, 'over-rate'), answer(3), answer(4, 'lost')];
  expect(outcomes(answers)).toEqual({ answered: 2, 'over-rate': 1, lost: 1 });
  expect(admitted(answers)).toBe(2);
});

test('the most in a span is found wherever it begins, from an instant on', () => {
  const answers = [0, 1, 2, 3, 100, 109, 110, 118].map((ms) => answer(ms));
  expect(mostWithin(answers, 10, 0)).toBe(4);
  expect(mostWithin(answers, 10, 50)).toBe(3);
  expect(mostWithin([answer(0, 'over-rate')], 10, 0)).toBe(0);
});

test('what was lost took no time', () => {
  expect(slowMs([answer(0, 'answered', 4), answer(1, 'lost', 99)])).toBe(4);
});
