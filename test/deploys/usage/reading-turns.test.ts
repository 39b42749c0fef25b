import { expect, test } from 'bun:test';
import { createReadingTurns, type Reader } from '../../../deploys/usage/reading-turns.ts';

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
    enter(accountId: number): Reader {
      const reader = turns.enter(accountId);
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
  const reader = enter(1);
  await reader.turn(never);
  let second = false;
  void reader.turn(never).then(() => (second = true));
  await Bun.sleep(0);
  expect(second).toBe(false);
  await pass();
  expect(second).toBe(true);
});

test('one account with many readers keeps another waiting for one part', async () => {
  const { enter, pass } = paused();
  const order: number[] = [];
  for (const accountId of [1, 1, 1, 1, 2])
    void enter(accountId)
      .turn(never)
      .then(() => order.push(accountId));
  for (let i = 0; i < 6; i++) await pass();
  expect(order).toEqual([1, 1, 2, 1, 1]);
});

test('eight read one account at once; there is room again when one leaves, and always for another account', () => {
  const { turns } = paused();
  const readers = Array.from({ length: 8 }, () => turns.enter(1));
  expect(readers.every((reader) => reader !== undefined)).toBe(true);
  expect(turns.enter(1)).toBeUndefined();
  expect(turns.enter(2)).toBeDefined();
  readers[3]?.leave();
  expect(turns.enter(1)).toBeDefined();
  expect(turns.enter(1)).toBeUndefined();
});

test('who does not wait any more is let go at once, and takes nobody’s turn', async () => {
  const { enter, pass } = paused();
  await enter(1).turn(never);
  const gone = new AbortController();
  const leaving = enter(1).turn(gone.signal);
  let other = false;
  void enter(1)
    .turn(never)
    .then(() => (other = true));
  gone.abort();
  await leaving;
  await enter(1).turn(AbortSignal.abort());
  expect(other).toBe(false);
  await pass();
  expect(other).toBe(true);
});
