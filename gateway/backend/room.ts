import type { Clock } from '../../shared/clock.ts';
import type { Backend } from './backend.ts';

/**
 * The backends with room, in the given order; when none has any, it waits until one does, at most `waitMs`. Gives none
 * when the time is over or `signal` aborts.
 */
export async function withRoom(
  backends: readonly Backend[],
  waitMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Backend[]> {
  const dueMs = clock.monotonic() + waitMs;
  for (;;) {
    const roomy = backends.filter(({ hasRoom }) => hasRoom);
    const leftMs = dueMs - clock.monotonic();
    if (roomy.length > 0 || backends.length === 0 || leftMs <= 0 || signal.aborted) return roomy;
    const waited = new AbortController();
    const stop = () => waited.abort();
    signal.addEventListener('abort', stop, { once: true });
    await Promise.race([...backends.map(({ nextLeft }) => nextLeft), clock.sleep(leftMs, waited.signal)]);
    signal.removeEventListener('abort', stop);
    waited.abort();
  }
}
