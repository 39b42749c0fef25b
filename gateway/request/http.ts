/** A request whose method or content type this endpoint does not take. */
export type HeadRefusal = Readonly<{ kind: 'not-post' | 'not-json'; reason: string }>;

/** `application/json` with any parameters. */
const JSON_TYPE = /^\s*application\/json\s*(;|$)/i;

/** What is wrong with a request's head, before its body is read; `undefined` when nothing is. */
export function refusalOfHead({
  method,
  headers,
}: Pick<Request, 'method' | 'headers'>): HeadRefusal | undefined {
  if (method !== 'POST') {
    const more = headers.has('upgrade') ? '; WebSocket is not offered' : '';
    return { kind: 'not-post', reason: `Only POST is allowed${more}` };
  }
  const type = headers.get('content-type') ?? '';
  if (type !== 'application/json' && !JSON_TYPE.test(type))
    return { kind: 'not-json', reason: 'Content-Type must be application/json' };
  const encoding = headers.get('content-encoding') ?? 'identity';
  if (encoding === 'identity') return undefined;
  return { kind: 'not-json', reason: 'A compressed request body is not accepted' };
}

/** The ranges of `Accept` or `Accept-Encoding`; a weight of 0 refuses one (RFC 9110 12.4.2). */
export function rangesIn(header: string | null) {
  return (header ?? '')
    .toLowerCase()
    .split(',')
    .map((range) => {
      const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
      return { name, parameters, isRefused: parameters.some((each) => /^q=0(?:\.0*)?$/.test(each)) };
    });
}

const CODINGS = ['zstd', 'br', 'gzip', 'deflate'];
/** The codings to request by `Accept-Encoding`, of which a handful of clients send nearly all. */
const codingsByHeader = new Map<string | null, string>();
const HEADERS_MAX = 64;

/** The known content codings that a caller reads, as they are requested upstream (RFC 9110 12.5.3); `identity`: none. */
export function codingsIn(header: string | null): string {
  return codingsByHeader.get(header) ?? codingsRead(header);
}

function codingsRead(header: string | null): string {
  if ((header?.length ?? 0) > 1_024) return 'identity'; // which suits everybody; a long one is not worth its time
  const accepted = new Map(rangesIn(header).map(({ name, isRefused }) => [name, !isRefused]));
  const codings = CODINGS.filter((name) => accepted.get(name) ?? accepted.get('*')).join(', ') || 'identity';
  if (codingsByHeader.size < HEADERS_MAX) codingsByHeader.set(header, codings);
  return codings;
}

/** A body longer than the config allows. `isEndless`: so much of it is still to come that its connection is better closed. */
export type BodyRefusal = { readonly kind: 'body-too-large'; readonly isEndless: boolean };

type Body =
  { readonly kind: 'body'; readonly bytes: Buffer } | BodyRefusal | { readonly kind: 'caller-left' };

/** Reads at most `bytesMax` bytes; of a longer body the rest is not read. Never rejects. */
export function readBody(request: Request, bytesMax: number): Promise<Body> {
  const length = request.headers.get('content-length');
  if (length === null) return readChunks(request, bytesMax).catch(callerLeft);
  if (Number(length) > bytesMax) return Promise.resolve(tooLarge(Number(length) > READ_OUT_BYTES_MAX));
  // The listener reads no more than the declared length, so the fast whole read cannot exceed it.
  return request.arrayBuffer().then((buffer) => ({ kind: 'body', bytes: Buffer.from(buffer) }), callerLeft);
}

async function readChunks({ body, signal }: Request, bytesMax: number): Promise<Body> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) return tooLarge(true);
    chunks.push(chunk);
  }
  // The listener refuses bad framing behind the last chunk after it has given that: nothing is sent for such a request.
  await new Promise(setImmediate);
  return signal.aborted ? callerLeft() : { kind: 'body', bytes: Buffer.concat(chunks) };
}

const callerLeft = (): Body => ({ kind: 'caller-left' });
const tooLarge = (isEndless: boolean): Body => ({ kind: 'body-too-large', isEndless });

/** The listener reads a refused body on, so that a caller who sends first sees the refusal; it would do so for ever. */
const READ_OUT_BYTES_MAX = 16_777_216;

/** What an SDK in a browser sends beside the plain headers: kit and web3.js name themselves, and keys have two carriers. */
const ALLOWED = 'content-type, accept, authorization, x-token, solana-client';

const SHARED: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'retry-after, ratelimit, ratelimit-policy, x-credits-cost, x-credits-left, x-sluice-backend, x-sluice-slot',
};

/** Headers that let a page of any origin read the answer, never with credentials: the key is in the request. */
export function corsFields(headers: Headers): Readonly<Record<string, string>> {
  return headers.has('origin') ? SHARED : {};
}

/** The answer to a browser's question before its request; it needs no key. */
export function preflight(request: Headers): Response {
  const headers = {
    allow: 'OPTIONS, POST',
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'OPTIONS, POST',
    'access-control-allow-headers': request.get('access-control-request-headers') ?? ALLOWED,
    'access-control-max-age': '86400', // a day, as Agave says
    vary: 'access-control-request-headers',
  };
  return new Response(null, { status: 204, headers });
}
