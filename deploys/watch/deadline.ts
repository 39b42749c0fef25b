import type { Clock } from '../../shared/clock.ts';

type Within<T> = { readonly kind: 'done'; readonly value: T } | { readonly kind: 'timed-out' };

/**
 * Does `work` under a signal that aborts after `timeoutMs` or with `signal`, whichever is first, and gives up waiting
 * at that instant even if `work` ignores its signal. What `work` throws before then is thrown.
 */
export async function within<T>(
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<Within<T>> {
  const over = new AbortController();
  const ended = new AbortController();
  const timeout = clock
    .sleep(timeoutMs, AbortSignal.any([signal, ended.signal]))
    .then((): Within<T> => ({ kind: 'timed-out' }));
  const done = work(over.signal).then((value): Within<T> => ({ kind: 'done', value }));
  // Work that fails after its time is over has nobody left to tell.
  done.catch(() => {});
  try {
    return await Promise.race([done, timeout]);
  } finally {
    ended.abort();
    over.abort();
  }
}
