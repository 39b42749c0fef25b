import type { Clock } from '../../shared/clock.ts';

/** Wakes a loop that waits. A ring that nobody waited for is heard by the next wait. */
export type Bell = Readonly<{
  ring(): void;
  /** Resolves at the next ring, or after `waitMs`. For one waiter. */
  wait(waitMs: number): Promise<void>;
}>;

/** A bell that has not been rung. */
export function createBell(clock: Clock): Bell {
  let rung = new AbortController();
  return {
    ring: () => rung.abort(),
    wait: async (waitMs) => {
      await clock.sleep(waitMs, rung.signal);
      if (rung.signal.aborted) rung = new AbortController();
    },
  };
}
