/**
 * Time as an argument. `now` is Unix milliseconds; `monotonic` is milliseconds from an arbitrary start and
 * never steps back, so rates and deadlines use it; `sleep` resolves early, without rejecting, when `signal` aborts.
 */
export type Clock = Readonly<{
  now(): number;
  monotonic(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}>;

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const timer = setTimeout(finish, ms);
      signal.addEventListener('abort', finish, { once: true });
      function finish() {
        clearTimeout(timer);
        signal.removeEventListener('abort', finish);
        resolve();
      }
    }),
};
