import type { Clock } from '../../shared/clock.ts';
import { monotonicOf } from '../fakes/chain-clock.ts';

/** A clock that stands still until it is advanced. As the system's, `monotonic` has fractions and `now` has none. */
export function createVirtualClock(startMs = 1_000_000) {
  let nowMs = startMs;
  const sleeps = new Set<{ untilMs: number; wake(): void }>();

  const clock: Clock = {
    now: () => Math.round(nowMs),
    monotonic: () => monotonicOf(nowMs),
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const sleep = { untilMs: nowMs + ms, wake };
        sleeps.add(sleep);
        signal.addEventListener('abort', wake, { once: true });
        function wake() {
          sleeps.delete(sleep);
          signal.removeEventListener('abort', wake);
          resolve();
        }
      }),
  };

  return {
    clock,
    /** Steps `ms` on, or back when it is negative, and wakes who slept until then. */
    advance(ms: number) {
      nowMs += ms;
      for (const sleep of sleeps) if (sleep.untilMs <= nowMs) sleep.wake();
    },
    /** How many sleep now. */
    sleeping: () => sleeps.size,
  };
}
