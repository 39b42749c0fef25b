import { describe, expect, test } from 'bun:test';
import { createScanPermits } from '../../../gateway/limits/scans.ts';

const never = new AbortController().signal;
const settled = () => new Promise(setImmediate);

/** Takes permits for account 1 and notes the order in which they are granted. */
function taking(max: number) {
  const permits = createScanPermits();
  const granted: string[] = [];
  const give = new Map<string, () => void>();
  const take = async (name: string, signal = never) => {
    give.set(name, await permits.take(1, max, signal));
    granted.push(name);
  };
  return { permits, granted, take, give: (name: string) => give.get(name)?.() };
}

describe('scans of one account', () => {
  test('run as many at once as the plan allows, the others in the order of asking', async () => {
    const { granted, take, give } = taking(2);
    for (const name of ['a', 'b', 'c', 'd']) void take(name);
    await settled();
    expect(granted).toEqual(['a', 'b']);
    give('b');
    await settled();
    expect(granted).toEqual(['a', 'b', 'c']);
    give('a');
    await settled();
    expect(granted).toEqual(['a', 'b', 'c', 'd']);
  });

  test('a permit given back twice counts once', async () => {
    const { granted, take, give } = taking(1);
    for (const name of ['a', 'b', 'c']) void take(name);
    await settled();
    give('a');
    give('a');
    await settled();
    expect(granted).toEqual(['a', 'b']);
  });

  test('one whose caller leaves while it waits leaves the queue, and holds nothing', async () => {
    const { granted, take, give, permits } = taking(1);
    const caller = new AbortController();
    void take('a');
    void take('b', caller.signal);
    void take('c');
    caller.abort();
    await settled();
    expect(granted).toEqual(['a', 'b']);
    give('b');
    expect(granted).toEqual(['a', 'b']);
    give('a');
    await settled();
    expect(granted).toEqual(['a', 'b', 'c']);
    give('c');
    expect(permits.hasRoom(1, 1)).toBe(true);
  });

  test('are let in until twice as many wait as may run', async () => {
    const { take, permits, give } = taking(1);
    for (const [i, name] of ['a', 'b', 'c'].entries()) {
      expect(permits.hasRoom(1, 1)).toBe(i < 3);
      void take(name);
    }
    expect(permits.hasRoom(1, 1)).toBe(false);
    await settled();
    give('a');
    expect(permits.hasRoom(1, 1)).toBe(true);
  });

  test('a plan that grows while some wait lets them run', async () => {
    const permits = createScanPermits();
    const first = await permits.take(1, 1, never);
    let second = false;
    void (async () => {
      await permits.take(1, 1, never);
      second = true;
    })();
    void permits.take(1, 3, never);
    first();
    await settled();
    expect(second).toBe(true);
  });
});

test('accounts do not share permits', async () => {
  const permits = createScanPermits();
  await permits.take(1, 1, never);
  await permits.take(2, 1, never);
  expect([permits.hasRoom(1, 1), permits.hasRoom(3, 1)]).toEqual([true, true]);
});

test('a caller who has left already gets nothing to hold', async () => {
  const permits = createScanPermits();
  const first = await permits.take(1, 1, never);
  const left = await permits.take(1, 1, AbortSignal.abort());
  left();
  first();
  expect(permits.hasRoom(1, 1)).toBe(true);
});
