import { expect, test } from 'bun:test';
import { createTurns } from '../../../gateway/upstream/backend.ts';

test('of a batch the earliest call takes the turn of any, and other requests of its account keep theirs', () => {
  const turns = createTurns();
  const taken: string[] = [];
  const add = (name: string, batch?: object, place = 0) =>
    turns.add({
      accountId: 1,
      sibling: batch && { batch, place },
      take: () => void taken.push(name),
    });
  const [one, other] = [{}, {}];
  add('one 3', one, 3);
  add('single');
  add('one 2', one, 2);
  add('other 1', other, 1);
  add('one 0', one, 0);
  for (let next = turns.next(); next !== undefined; next = turns.next()) next.take();
  expect(taken).toEqual(['one 0', 'single', 'one 2', 'other 1', 'one 3']);
});
