import { expect, test } from 'bun:test';
import { createCallPermits } from '../../../gateway/limits/calls.ts';

const never = new AbortController().signal;
const settled = () => new Promise(setImmediate);

/** Calls of account 1 that wait, and the order in which they are let go on. */
function waiting() {
  const permits = createCallPermits();
  const order: string[] = [];
  const wait = async (name: string, max: number, signal = never) => {
    order.push((await permits.wait(1, max, signal)) ? name : `${name} left`);
  };
  return { permits, order, wait };
}

test('an account takes as many permits as its plan has, and another one when one is back', () => {
  const { take, giveBack } = createCallPermits();
  expect([take(1, 2), take(1, 2), take(1, 2), take(2, 2)]).toEqual([true, true, false, true]);
  giveBack(1);
  expect([take(1, 2), take(1, 2)]).toEqual([true, false]);
});

test('calls that wait have the permits that come back, in the order of asking, before any request', async () => {
  const { permits, order, wait } = waiting();
  expect(permits.take(1, 1)).toBe(true);
  for (const name of ['a', 'b', 'c']) void wait(name, 1);
  permits.giveBack(1);
  expect(permits.take(1, 1)).toBe(false);
  await settled();
  expect(order).toEqual(['a']);
  permits.giveBack(1);
  permits.giveBack(1);
  await settled();
  expect(order).toEqual(['a', 'b', 'c']);
  permits.giveBack(1);
  expect([permits.take(1, 1), permits.size()]).toEqual([true, 1]);
});

test('a call does not wait for what is free', () => {
  const permits = createCallPermits();
  expect([permits.wait(1, 1, never), permits.wait(1, 1, AbortSignal.abort())]).toEqual([true, false]);
});

test('a call whose caller leaves leaves the queue, and holds nothing', async () => {
  const { permits, order, wait } = waiting();
  const caller = new AbortController();
  permits.take(1, 1);
  void wait('a', 1, caller.signal);
  void wait('b', 1);
  caller.abort();
  permits.giveBack(1);
  await settled();
  expect(order).toEqual(['a left', 'b']);
  permits.giveBack(1);
  expect(permits.size()).toBe(0);
});

test('nothing is remembered of an account without calls, also when the last that waited has left', async () => {
  const { permits, wait } = waiting();
  const caller = new AbortController();
  permits.take(1, 1);
  void wait('a', 1, caller.signal);
  caller.abort();
  await settled();
  permits.giveBack(1);
  expect(permits.size()).toBe(0);
});

test('a plan that shrinks lets nobody in before as many have ended', () => {
  const { take, giveBack } = createCallPermits();
  for (let i = 0; i < 4; i++) take(1, 4);
  giveBack(1);
  giveBack(1);
  expect(take(1, 2)).toBe(false);
  giveBack(1);
  expect(take(1, 2)).toBe(true);
});
