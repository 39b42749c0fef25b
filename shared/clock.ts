/**
 * Time as an argument. `now` is whole Unix milliseconds; `monotonic` is milliseconds with fractions from an arbitrary start and
 * never steps back, so rates and deadlines use it; `sleep` resolves early, without rejecting, when `signal` aborts. A
 * wait that is over already, or is no number, is none.
 */
export type Clock = Readonly<{
  now(): number;
  monotonic(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}>;

/** Whole seconds that last as long as `ms`, at least 1: what a Retry-After says (RFC 9110 10.2.3). */
export function retryAfterSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}

/** The longest wait that timers know, 24.8 days: beyond it they warn, and do not wait at all. */
const SLEEP_MS_MAX = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      // Below zero and for NaN, timers warn on standard error.
      const timer = setTimeout(finish, ms > 0 ? Math.min(ms, SLEEP_MS_MAX) : 0);
      signal.addEventListener('abort', finish, { once: true });
      function finish() {
        clearTimeout(timer);
        signal.removeEventListener('abort', finish);
        resolve();
      }
    }),
};
