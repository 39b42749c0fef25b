import { expect, test } from 'bun:test';
import { createScanPermits } from '../../../gateway/limits/scans.ts';

const never = new AbortController().signal;

/** Takes permits for account 1 and notes the order in which they are granted. */
function taking() {
  const permits = createScanPermits();
  const granted: string[] = [];
  const give = new Map<string, () => void>();
  return {
    permits,
    granted,
    async take(name: string, max: number, signal = never) {
      give.set(name, await permits.take(1, max, signal));
      granted.push(name);
    },
    /** Gives permits back, one after the other, and has those that wait go on. */
    async give(...names: string[]) {
      await new Promise(setImmediate);
      for (const name of names) give.get(name)?.();
      await new Promise(setImmediate);
    },
  };
}

test('scans of one account run as many at once as the plan allows, the others in their order; other accounts are apart', async () => {
  const { granted, take, give, permits } = taking();
  for (const name of ['a', 'b', 'c', 'd']) void take(name, 2);
  await permits.take(2, 2, never);
  await give('b');
  expect(granted).toEqual(['a', 'b', 'c']);
  // A permit given back twice counts once.
  await give('b');
  expect(granted).toEqual(['a', 'b', 'c']);
  await give('a');
  expect(granted).toEqual(['a', 'b', 'c', 'd']);
});

test('a scan whose caller leaves while it waits, or has left, leaves the queue and holds nothing', async () => {
  const { granted, take, give, permits } = taking();
  const caller = new AbortController();
  void take('a', 1);
  void take('b', 1, caller.signal);
  void take('c', 1);
  caller.abort();
  void take('d', 1, AbortSignal.abort());
  await give('b', 'd');
  expect(granted).toEqual(['a', 'b', 'd']);
  await give('a');
  expect(granted).toEqual(['a', 'b', 'd', 'c']);
  await give('c');
  expect(permits.size()).toBe(0);
});

test('scans are let in until twice as many wait as may run', async () => {
  const { take, permits, give } = taking();
  for (const name of ['a', 'b', 'c']) {
    expect(permits.hasRoom(1, 1)).toBe(true);
    void take(name, 1);
  }
  expect(permits.hasRoom(1, 1)).toBe(false);
  await give('a');
  expect(permits.hasRoom(1, 1)).toBe(true);
});

test('a plan that grows while scans wait lets them run', async () => {
  const { granted, take, give } = taking();
  void take('a', 1);
  void take('b', 1);
  void take('c', 3);
  await give('a');
  expect(granted).toEqual(['a', 'b', 'c']);
});
