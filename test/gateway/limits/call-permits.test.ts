import { expect, test } from 'bun:test';
import { createCallPermits } from '../../../gateway/limits/calls.ts';

const never = new AbortController().signal;

/** Calls of account 1 that wait, and the order in which they go on. */
function waiting() {
  const permits = createCallPermits();
  const order: string[] = [];
  const wait = async (name: string, signal = never) => {
    order.push((await permits.wait(1, 1, signal)) ? name : `${name} left`);
  };
  return { permits, order, wait };
}

test('an account takes as many permits as its plan has, another one when one is back, and fewer when the plan shrinks', () => {
  const { take, giveBack } = createCallPermits();
  expect([take(1, 2), take(1, 2), take(1, 2), take(2, 2)]).toEqual([true, true, false, true]);
  giveBack(1);
  expect([take(1, 1), take(1, 2), take(1, 2)]).toEqual([false, true, false]);
});

test('calls that wait have the permits that come back, in their order, before any request', async () => {
  const { permits, order, wait } = waiting();
  expect(permits.wait(1, 1, never)).toBe(true);
  for (const name of ['a', 'b', 'c']) void wait(name);
  permits.giveBack(1);
  expect(permits.take(1, 1)).toBe(false);
  await new Promise(setImmediate);
  expect(order).toEqual(['a']);
  permits.giveBack(1);
  permits.giveBack(1);
  await new Promise(setImmediate);
  expect(order).toEqual(['a', 'b', 'c']);
  permits.giveBack(1);
  expect([permits.take(1, 1), permits.size()]).toEqual([true, 1]);
});

test('a call whose caller leaves leaves the queue and holds nothing, and then nothing is remembered of the account', async () => {
  const { permits, order, wait } = waiting();
  const callers = [new AbortController(), new AbortController()];
  permits.take(1, 1);
  void wait('a', callers[0]?.signal);
  void wait('b');
  void wait('c', callers[1]?.signal);
  expect(permits.wait(1, 1, AbortSignal.abort())).toBe(false);
  for (const caller of callers) caller.abort();
  permits.giveBack(1);
  await new Promise(setImmediate);
  expect(order.toSorted()).toEqual(['a left', 'b', 'c left']);
  permits.giveBack(1);
  expect(permits.size()).toBe(0);
});
