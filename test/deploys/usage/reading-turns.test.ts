import { expect, test } from 'bun:test';
import { createReadingTurns, type Reader } from '../../../deploys/usage/usage-view.ts';

/** A long look at usage makes nobody wait for more than one part of it. */
const never = new AbortController().signal;

/** Turns whose pauses last until they are told to end. */
function paused() {
  let end: (() => void) | undefined;
  const turns = createReadingTurns({
    sleep: () => new Promise((resolve) => (end = () => resolve(undefined))),
  });
  return {
    turns,
    enter(userId: string): Reader {
      const reader = turns.enter(userId);
      if (reader === undefined) throw new Error('there is no room');
      return reader;
    },
    /** Ends the pause, and lets everything run until the next. */
    async pass() {
      end?.();
      await Bun.sleep(0);
    },
  };
}

test('the first part is read at once, and the next after a pause', async () => {
  const { enter, pass } = paused();
  const reader = enter('a');
  await reader.turn(never);
  let second = false;
  void reader.turn(never).then(() => (second = true));
  await Bun.sleep(0);
  expect(second).toBe(false);
  await pass();
  expect(second).toBe(true);
});

test('one user with many windows keeps another waiting for one part', async () => {
  const { enter, pass } = paused();
  const order: string[] = [];
  for (const userId of ['a', 'a', 'a', 'a', 'b'])
    void enter(userId)
      .turn(never)
      .then(() => order.push(userId));
  for (let i = 0; i < 6; i++) await pass();
  expect(order).toEqual(['a', 'a', 'b', 'a', 'a']);
});

test('one user reads in eight places at once; there is room again when one is left, and always for another user', () => {
  const { turns } = paused();
  const readers = Array.from({ length: 8 }, () => turns.enter('a'));
  expect(readers.every((reader) => reader !== undefined)).toBe(true);
  expect(turns.enter('a')).toBeUndefined();
  expect(turns.enter('b')).toBeDefined();
  readers[3]?.leave();
  expect(turns.enter('a')).toBeDefined();
  expect(turns.enter('a')).toBeUndefined();
});

test('who does not wait any more is let go at once, and takes nobody’s turn', async () => {
  const { enter, pass } = paused();
  await enter('a').turn(never);
  const gone = new AbortController();
  const leaving = enter('a').turn(gone.signal);
  let other = false;
  void enter('a')
    .turn(never)
    .then(() => (other = true));
  gone.abort();
  await leaving;
  await enter('a').turn(AbortSignal.abort());
  expect(other).toBe(false);
  await pass();
  expect(other).toBe(true);
});
