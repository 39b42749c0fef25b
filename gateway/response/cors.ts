/** How long a browser may remember a preflight, in seconds (Agave's own value). */
const MAX_AGE_SECONDS = 86_400;

/** What an SDK in a browser sends beside the plain headers: kit and web3.js name themselves, and keys have two carriers. */
const ALLOWED = 'content-type, accept, authorization, x-token, solana-client';
const EXPOSED = 'retry-after, ratelimit, ratelimit-policy, x-credits-cost, x-credits-left';

const NONE: Readonly<Record<string, string>> = {};
const SHARED: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED,
};

/**
 * Headers that let a page of any origin read the answer. Never with credentials: the key is in the request, and a
 * cookie means nothing here.
 */
export function corsFields(headers: Headers): Readonly<Record<string, string>> {
  return headers.has('origin') ? SHARED : NONE;
}

/** The answer to a browser's question before its request; it needs no key. */
export function preflight(headers: Headers): Response {
  const asked = headers.get('access-control-request-headers');
  return new Response(null, {
    status: 204,
    headers: {
      allow: 'OPTIONS, POST',
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'OPTIONS, POST',
      'access-control-allow-headers': asked ?? ALLOWED,
      'access-control-max-age': String(MAX_AGE_SECONDS),
      vary: 'access-control-request-headers',
    },
  });
}
