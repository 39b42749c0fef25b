import { describe, expect, test } from 'bun:test';
import type { Clock } from '../../shared/clock.ts';
import { BEGAN_MS, SLOT_MS, startChain, stillClock } from './harness.ts';

/** A clock whose sleeper alone moves it; `onSleep` sees every sleep and may set it. */
function drivenClock(onSleep: (now: number, ms: number) => number): Clock {
  let now = BEGAN_MS;
  return {
    ...stillClock,
    now: () => now,
    sleep: async (ms) => {
      now = onSleep(now, ms);
    },
  };
}

/** The chain's slot and the clock's time at each of the first `count` sleeps. */
async function ticks(count: number, move: (now: number, ms: number, index: number) => number) {
  const stop = new AbortController();
  const seen: { slots: number; elapsedMs: number }[] = [];
  let slotNow = () => 0;
  const clock = drivenClock((now, ms) => {
    seen.push({ slots: slotNow(), elapsedMs: now - BEGAN_MS });
    if (seen.length === count) stop.abort();
    return move(now, ms, seen.length);
  });
  using net = await startChain({ clock });
  slotNow = () => Number(net.chain.slotAt('processed') - 450_000_000n);
  await net.localnet.run(stop.signal);
  return {
    seen,
    chain: { blockTime: Number(net.chain.blockTimeOf(net.chain.slotAt('processed'))), slots: slotNow() },
  };
}

describe('the clock moves the chain', () => {
  test('one slot each slotMs, without drift from sleeps that last too long', async () => {
    const { seen } = await ticks(100, (now, ms) => now + ms + 7);
    for (const { slots, elapsedMs } of seen) expect(slots).toBe(Math.floor(elapsedMs / SLOT_MS));
  });

  test('catches up with a short stall slot by slot', async () => {
    const { seen } = await ticks(10, (now, ms, index) => now + ms + (index === 5 ? 100 * SLOT_MS : 0));
    expect(seen.at(-1)?.slots).toBe(109);
  });

  test('does not make up for hours of sleep, and shows the new time at once', async () => {
    const { seen, chain } = await ticks(10, (now, ms, index) => now + ms + (index === 5 ? 36_000_000 : 0));
    expect(seen.at(-1)?.slots).toBe(9);
    expect(chain.blockTime).toBeGreaterThanOrEqual(BEGAN_MS / 1000 + 36_000);
  });

  test('goes on slower, and not back in time, when the clock is set back', async () => {
    const { seen, chain } = await ticks(20, (now, ms, index) => now + ms - (index === 5 ? 3_600_000 : 0));
    expect(seen.at(-1)?.slots).toBeGreaterThanOrEqual(18);
    expect(chain.blockTime).toBeGreaterThanOrEqual(BEGAN_MS / 1000);
  });
});
