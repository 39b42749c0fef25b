import type { Backend } from './backend.ts';

/**
 * One POST to a backend; resolves at the head. Rejects when no head comes. The body of what it gives is
 * unread, and not decompressed: `accept-encoding` is the caller's, and the answer passes as it came.
 */
export type Transport = (
  backend: Backend,
  body: Uint8Array<ArrayBuffer>,
  acceptEncoding: string,
  signal: AbortSignal,
) => Promise<Response>;

/** The transport over Bun's fetch: pooled connections, no proxies from the environment, no redirects followed. */
export const fetchTransport: Transport = (backend, body, acceptEncoding, signal) => {
  const headers = new Headers(backend.headers);
  headers.set('accept-encoding', acceptEncoding);
  return fetch(backend.config.url, {
    method: 'POST',
    headers,
    body,
    signal,
    redirect: 'manual',
    proxy: false,
    decompress: false,
    // The listener's idle limit cuts what stalls, and cancels this with it; a second clock here would only race it.
    timeout: false,
  });
};
