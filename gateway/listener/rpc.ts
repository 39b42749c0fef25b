import { type HeadFields, trimmed } from '../../shared/keys/carrier.ts';
import { TOKEN } from '../http/fields.ts';
import type { StreamBody, StreamEnd } from '../http/stream-body.ts';

/** A request whose head has been read. */
export type RpcRequest = Readonly<{
  method: string;
  /** The path and the query stand in it as they were sent, behind an origin that says nothing. */
  url: string;
  headers: HeadFields;
  /** The other end of its connection; `undefined` when that is closed. */
  address: string | undefined;
  /** Aborted when the caller has left. Made when it is first read. */
  signal: AbortSignal;
  /** Calls `then` when the last byte of the answer has been handed to the system, or when the caller has left. */
  onSent(then: () => void): void;
  /**
   * Reads at most `bytesMax` bytes; of a longer body the rest is not read. `holder` is the account of a valid key, whose
   * memory the body is then; without one there is less room and time for it. Single-use. Never rejects.
   */
  readBody(bytesMax: number, holder?: number): RequestBody | Promise<RequestBody>;
}>;

/** Header fields of an answer, by name. */
export type Fields = Record<string, string>;

type RpcResponseInit = Readonly<{
  status: number;
  fields: Readonly<Fields>;
  /** The values of `set-cookie`, which is a line each (RFC 6265 3). */
  cookies?: readonly string[] | undefined;
  body?: Uint8Array<ArrayBuffer> | StreamBody | undefined;
  /** How long a stream is, where that is known. */
  length?: number | undefined;
  /** Called when a stream has ended, unless its caller had left before it began. */
  onEnd?: ((end: StreamEnd) => void) | undefined;
}>;

/**
 * A finished answer of the RPC endpoint, or one whose bytes are still to come. A connection gets it as it is. It is a class
 * because a route of a plugin may give an object with the same members, which is sent as JSON.
 */
export class RpcResponse implements RpcResponseInit {
  readonly status: number;
  readonly fields: Readonly<Fields>;
  readonly cookies: RpcResponseInit['cookies'];
  readonly body: RpcResponseInit['body'];
  readonly length: number | undefined;
  readonly onEnd: RpcResponseInit['onEnd'];
  /** For the compiler, which else takes an object with the same members for one. */
  declare private readonly nominal: true;

  constructor({ status, fields, cookies, body, length, onEnd }: RpcResponseInit) {
    this.status = status;
    this.fields = fields;
    this.cookies = cookies;
    this.body = body;
    this.length = length;
    this.onEnd = onEnd;
  }
}

/** A request whose method or content type this endpoint does not take. */
export type HeadRefusal = Readonly<{ kind: 'not-post' | 'not-json'; reason: string }>;

/** `application/json` with any parameters. */
const JSON_TYPE = /^\s*application\/json\s*(;|$)/i;

/** Refuses a request by its head, before its body is read; `undefined`: it is let in. */
export function refusalOfHead({
  method,
  headers,
}: Pick<RpcRequest, 'method' | 'headers'>): HeadRefusal | undefined {
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

/** A body longer than the config allows, or too many bodies under way. */
export type BodyRefusal = { readonly kind: 'body-too-large' | 'bodies-full' };

export type RequestBody =
  { readonly kind: 'body'; readonly bytes: Buffer } | BodyRefusal | { readonly kind: 'caller-left' };

/** Headers that an SDK in a browser sends beside the plain ones: kit and web3.js name themselves, and keys have two carriers. */
const ALLOWED = 'content-type, accept, authorization, x-token, solana-client';

const SHARED: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'retry-after, ratelimit, ratelimit-policy, x-credits-cost, x-credits-left, x-sluice-backend, x-sluice-slot',
};

/** Headers that let a page of any origin read the answer, never with credentials: the key is in the request. */
export function corsFields(headers: HeadFields): Readonly<Record<string, string>> {
  return headers.has('origin') ? SHARED : {};
}

/** The answer to a browser's question before its request; it needs no key. */
export function preflight(request: HeadFields): RpcResponse {
  const fields = {
    allow: 'OPTIONS, POST',
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'OPTIONS, POST',
    'access-control-allow-headers': fieldNamesIn(request.get('access-control-request-headers')) || ALLOWED,
    'access-control-max-age': '86400', // a day, as Agave says
    vary: 'access-control-request-headers',
  };
  return new RpcResponse({ status: 204, fields });
}

const FIELD_NAME = new RegExp(`^${TOKEN}$`);

/** A list of field names as it came, or those of them that are names. */
function fieldNamesIn(list: string | null): string {
  const all = (list ?? '').split(',');
  const names = all.filter((name) => FIELD_NAME.test(trimmed(name)));
  return trimmed(names.join(','));
}
