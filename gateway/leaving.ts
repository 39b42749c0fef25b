import type { Clock } from '../shared/clock.ts';

/**
 * How a listener sends its callers away before it closes: every answer ends its connection, so that none is closed
 * under a request that is already on its way. New connections are still taken, for those that have not heard yet.
 */
export type Leaving = Readonly<{
  hasBegun(): boolean;
  /** Marks an answer as the last one of its connection. */
  last(answer: Promise<Response>): Promise<Response>;
  /** Resolves when no request has come for a quarter of a second, or after `mostMs`. */
  begin(mostMs: number): Promise<void>;
}>;

/** A pool of connections in use asks again within this time. */
const QUIET_MS = 250;

export function createLeaving(clock: Clock): Leaving {
  const never = new AbortController().signal;
  let begun = false;
  let lastMs = 0;

  async function last(answer: Promise<Response>): Promise<Response> {
    lastMs = clock.monotonic();
    const response = await answer;
    response.headers.set('connection', 'close');
    return response;
  }

  async function begin(mostMs: number): Promise<void> {
    begun = true;
    lastMs = clock.monotonic();
    const endMs = lastMs + mostMs;
    for (;;) {
      const waitMs = Math.min(lastMs + QUIET_MS, endMs) - clock.monotonic();
      if (waitMs <= 0) return;
      await clock.sleep(waitMs, never);
    }
  }

  return { hasBegun: () => begun, last, begin };
}
