import type { Clock } from '../../shared/clock.ts';
import type { Backend } from './backend.ts';
import type { Sibling } from './turns.ts';

/** A place at a backend for one call; `leave` must be called once. `others` have room too, for when it fails. */
export type Place = Readonly<{ backend: Backend; leave: () => void; others: readonly Backend[] }>;

/**
 * A place at the first of the given backends with room; when none has any, the first that becomes free, each account in
 * its turn, after at most `waitMs`. `undefined` when the time is over or `signal` aborts.
 */
export function placeAt(
  backends: readonly Backend[],
  accountId: number,
  waitMs: number,
  clock: Clock,
  signal: AbortSignal,
  sibling?: Sibling,
): Place | Promise<Place | undefined> | undefined {
  const [backend, ...others] = backends.filter(({ hasRoom }) => hasRoom);
  if (backend !== undefined) return { backend, leave: backend.enter(), others };
  return backends.length === 0 || signal.aborted
    ? undefined
    : nextPlace(backends, accountId, waitMs, clock, signal, sibling);
}

async function nextPlace(
  backends: readonly Backend[],
  accountId: number,
  waitMs: number,
  clock: Clock,
  signal: AbortSignal,
  sibling?: Sibling,
): Promise<Place | undefined> {
  const { promise, resolve } = Promise.withResolvers<Place | undefined>();
  const waiters = backends.map((backend) => {
    const take = () => {
      stop();
      resolve({ backend, leave: backend.enter(), others: [] });
    };
    return { backend, waiter: { accountId, sibling, take } };
  });
  const over = new AbortController();
  const stop = () => {
    for (const { backend, waiter } of waiters) backend.turns.remove(waiter);
    over.abort();
  };
  for (const { backend, waiter } of waiters) backend.turns.add(waiter);
  signal.addEventListener('abort', stop, { once: true });
  void clock.sleep(waitMs, over.signal).then(() => {
    stop();
    resolve(undefined); // too late for one that has a place
  });
  const place = await promise;
  signal.removeEventListener('abort', stop);
  return place;
}
