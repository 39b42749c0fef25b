import type { Clock } from '../../shared/clock.ts';

/** A clock that stands still until it is advanced. As the system's, `monotonic` has fractions and `now` has none. */
export type VirtualClock = Clock &
  Readonly<{
    /** Lets `ms` pass: every sleeper due by then wakes at its own instant, and what it starts goes as far as it can. */
    advance(ms: number): Promise<void>;
    /** How many sleep; a test that ends with sleepers has left something running. */
    sleepers(): number;
  }>;

/** 2026-11-20T00:00:00Z, so that timestamps in tests can be read. */
export const START_MS = Date.UTC(2026, 10, 20);

/** How long the host has run after `elapsedMs` of a test: no whole number, and by a clock that drifts from that on the wall. */
export function monotonicOf(elapsedMs: number): number {
  return 86_399_999.390625 + elapsedMs * (1 + 2 ** -20);
}

export function createVirtualClock(startMs: number = START_MS): VirtualClock {
  const sleeping = new Set<{ dueMs: number; wake(): void }>();
  let elapsedMs = 0;

  async function advance(ms: number): Promise<void> {
    const targetMs = elapsedMs + ms;
    for (;;) {
      await settle();
      const next = [...sleeping].sort((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined || next.dueMs > targetMs) break;
      elapsedMs = Math.max(elapsedMs, next.dueMs);
      next.wake();
    }
    elapsedMs = targetMs;
    await settle();
  }

  function sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const sleeper = { dueMs: elapsedMs + Math.max(0, ms), wake };
      sleeping.add(sleeper);
      signal.addEventListener('abort', wake, { once: true });
      function wake() {
        sleeping.delete(sleeper);
        signal.removeEventListener('abort', wake);
        resolve();
      }
    });
  }

  return {
    // Waits that are reckoned by the other clock end a fraction early.
    now: () => Math.round(startMs + elapsedMs),
    monotonic: () => monotonicOf(elapsedMs),
    sleep,
    advance,
    sleepers: () => sleeping.size,
  };
}

/** Promise chains of the code under test are a handful of links long; each turn of the loop runs all that are ready. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
