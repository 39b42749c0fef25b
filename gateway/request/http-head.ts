/** A request whose method or content type this endpoint does not take. */
export type HeadRefusal =
  | { readonly kind: 'not-post'; readonly reason: string }
  | { readonly kind: 'not-json'; readonly reason: string };

/** What is wrong with a request's head, before its body is read; `undefined` when nothing is. */
export function refusalOfHead({
  method,
  headers,
}: Pick<Request, 'method' | 'headers'>): HeadRefusal | undefined {
  if (method !== 'POST') return headers.has('upgrade') ? NO_WEBSOCKET : NOT_POST;
  const type = headers.get('content-type');
  if (type === null || !JSON_TYPE.test(type)) return NOT_JSON;
  const encoding = headers.get('content-encoding');
  return encoding === null || encoding === 'identity' ? undefined : NOT_PLAIN;
}

/** `application/json` with any parameters. */
const JSON_TYPE = /^\s*application\/json\s*(;|$)/i;

const NOT_POST: HeadRefusal = { kind: 'not-post', reason: 'Only POST is allowed' };
const NO_WEBSOCKET: HeadRefusal = {
  kind: 'not-post',
  reason: 'Only POST is allowed; WebSocket is not offered',
};
const NOT_JSON: HeadRefusal = { kind: 'not-json', reason: 'Content-Type must be application/json' };
const NOT_PLAIN: HeadRefusal = { kind: 'not-json', reason: 'A compressed request body is not accepted' };
