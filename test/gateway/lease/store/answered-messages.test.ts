import { expect, test } from 'bun:test';
import { createAnsweredMessages } from '../../../../gateway/lease/store/answered-messages.ts';
import { speaker } from './centres.ts';

test('the latest answered message of an account is remembered, whatever order the answers come in', () => {
  const answered = createAnsweredMessages();
  answered.note(speaker('a', 5), 1);
  answered.note(speaker('a', 3), 1);
  expect([answered.last(speaker('a', 6), 1), answered.last(speaker('a', 6), 2)]).toEqual([5, 0]);
});
test('another start of the node begins with nothing', () => {
  const answered = createAnsweredMessages();
  answered.note(speaker('a', 5, 1), 1);
  expect(answered.last(speaker('a', 1, 2), 1)).toBe(0);
});
test('only so many accounts are remembered, the ones that spoke last', () => {
  const answered = createAnsweredMessages(2);
  for (const account of [1, 2, 1, 3]) answered.note(speaker('a', 9), account);
  expect([1, 2, 3].map((account) => answered.last(speaker('a', 9), account))).toEqual([9, 0, 9]);
});
