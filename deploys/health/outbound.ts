import type { Clock } from '../../shared/clock.ts';

type Within<T> = { readonly kind: 'done'; readonly value: T } | { readonly kind: 'timed-out' };

/** Does `work`, whose signal aborts after `timeoutMs` or with `signal`; then nothing waits for it any more. Throws what it throws. */
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
  done.catch(() => {}); // after the timeout nothing awaits it
  try {
    return await Promise.race([done, timeout]);
  } finally {
    ended.abort();
    over.abort();
  }
}

/** The body of at most so many bytes; `undefined` when there is more, which is not read. */
export async function boundedText(response: Response, bytesMax: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) return undefined; // leaving the loop cancels the body
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The code of an error, such as ECONNREFUSED. Messages are not for logs: those of fetch repeat an address, those of TLS what was received. */
export function codeOf(error: unknown, otherwise: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Za-z0-9_]{1,80}$/.test(code) ? code : otherwise;
}
