import { expect, test } from 'bun:test';
import { createVirtualClock } from './chain-clock.ts';
import { createLeaseStore } from './lease-store.ts';

test('the lease store answers after its way, fails at once, or at its deadline', async () => {
  const clock = createVirtualClock();
  const { store, counts, conduct } = createLeaseStore(clock, 5);
  const sync = async () => {
    const before = clock.now();
    const replies = store.sync({ node: 'n1', fence: 1, startFence: 1 } as never, []);
    let tookMs: number | undefined;
    void replies.then(() => (tookMs = clock.now() - before));
    await clock.advance(100);
    return tookMs;
  };
  expect(await sync()).toBe(5);
  conduct('fails');
  expect(await sync()).toBe(0);
  conduct('is silent');
  expect([await sync(), counts.calls]).toEqual([100, 3]);
});
