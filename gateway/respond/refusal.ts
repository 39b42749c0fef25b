import { unreachable } from '../../shared/brand.ts';
import type { Identity } from '../../shared/keys/identify.ts';
import { type Charge, type RateState, retryAfterSeconds } from '../limits/charge.ts';
import type { Barred } from '../request/auth.ts';
import { type Envelope, type Malformed, NULL_ID } from '../request/envelope.ts';
import type { BodyRefusal, HeadRefusal } from '../request/http.ts';

/** Codes of errors that the gateway itself makes inside HTTP 200 (JSON-RPC 2.0 section 5.1; Agave `custom_error.rs`). */
export const METHOD_NOT_FOUND = -32601;
export const INVALID_REQUEST = -32600;
export const INVALID_PARAMS = -32602;
export const HISTORY_NOT_AVAILABLE = -32011;
export const NODE_UNHEALTHY = -32005;
export const NO_BACKEND = -503;

/** `{"jsonrpc":"2.0","error":{"code":C,"message":"M"},"id":ID}`, the id verbatim. No other member: strict clients refuse more. */
export function rpcError(code: number, message: string, id: Uint8Array): Uint8Array<ArrayBuffer> {
  return answer(`"error":{"code":${code},"message":${JSON.stringify(message)}}`, id);
}

/** `{"jsonrpc":"2.0","result":RESULT,"id":ID}`; `json` is the result's text. */
export function rpcResult(json: string, id: Uint8Array): Uint8Array<ArrayBuffer> {
  return answer(`"result":${json}`, id);
}

function answer(member: string, id: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = Buffer.from(`{"jsonrpc":"2.0",${member},"id":`);
  const body = new Uint8Array(head.length + id.length + 1);
  body.set(head);
  body.set(id, head.length);
  body[body.length - 1] = CLOSE_BRACE;
  return body;
}

const CLOSE_BRACE = 0x7d;

/** Both fields, for every answer to a caller whose rate was looked at. */
export function rateFields(state: RateState): Readonly<Record<string, string>> {
  return { ratelimit: rateLeft(state), 'ratelimit-policy': ratePolicy(state) };
}

/** `RateLimit-Policy`: `q` calls in a full bucket, refilled over `w` seconds (draft-ietf-httpapi-ratelimit-headers-10). */
export function ratePolicy({ plan }: RateState): string {
  return `"calls";q=${plan.burst};w=${Math.max(1, Math.ceil(plan.burst / plan.rps))}`;
}

/** `RateLimit`: `r` calls left now, `t` seconds until the bucket is full again. */
export function rateLeft({ plan, tokens }: RateState): string {
  const fullMs = ((plan.burst - tokens) / plan.rps) * 1_000;
  return `"calls";r=${Math.max(0, Math.floor(tokens))};t=${retryAfterSeconds(fullMs)}`;
}

/** Every expected no of the RPC endpoint. A new kind does not compile until it has a row below. */
export type Refusal =
  | Exclude<Identity, { kind: 'known' }>
  | Exclude<Charge, { kind: 'charged' }>
  | Barred
  | HeadRefusal
  | BodyRefusal
  | Malformed
  /** The account has `max` scans under way, as many as its plan allows, and others waiting. */
  | { readonly kind: 'over-scans'; readonly max: number }
  | { readonly kind: 'no-backend' };

type Row = Readonly<{
  status: number;
  code: number;
  message: string;
  headers: Readonly<Record<string, string>>;
}>;

/** The row of DESIGN 3.2 for a refusal: the JSON-RPC code is minus the status where no standard code fits. */
function rowOf(refusal: Refusal): Row {
  switch (refusal.kind) {
    case 'missing-key':
      return row(401, -401, 'Missing API key');
    case 'invalid-key':
      return row(401, -401, 'Invalid or inactive API key');
    case 'over-rate':
      return row(429, -429, 'Rate limit exceeded', {
        'retry-after': String(retryAfterSeconds(refusal.waitMs)),
        ...rateFields(refusal.rate),
      });
    case 'too-many-failed-keys':
      return row(429, -429, 'Rate limit exceeded', {
        'retry-after': String(retryAfterSeconds(refusal.waitMs)),
      });
    case 'over-scans':
      return row(429, -429, `Rate limit exceeded: at most ${refusal.max} scans at once`, {
        'retry-after': '1',
      });
    case 'out-of-credits':
      return row(402, -402, 'Trial credits used up', rateFields(refusal.rate));
    case 'check-unavailable':
      return row(503, -503, 'Key check unavailable', { 'retry-after': '1' });
    case 'credits-unavailable':
      return row(503, -503, 'Credit check unavailable', { 'retry-after': '1' });
    case 'no-backend':
      return row(503, -503, 'No backend available', { 'retry-after': '1' });
    case 'malformed':
      return row(400, refusal.code, refusal.reason);
    case 'body-too-large':
      return row(413, -32600, 'Request body too large', refusal.isEndless ? { connection: 'close' } : {});
    case 'not-json':
      return row(415, -32600, refusal.reason);
    case 'not-post':
      return row(405, -32600, refusal.reason, { allow: 'OPTIONS, POST' });
    default:
      return unreachable(refusal);
  }
}

function row(status: number, code: number, message: string, headers: Row['headers'] = {}): Row {
  return { status, code, message, headers };
}

/**
 * The finished answer. `to` supplies the ids: one error object for each of its calls, or one with id null. `fields`
 * are headers that only the stage that refuses knows.
 */
export function refuse(
  refusal: Refusal,
  to?: Envelope | Malformed,
  fields: Readonly<Record<string, string>> = {},
): Response {
  const { status, code, message, headers } = rowOf(refusal);
  return new Response(
    bodyFor(to, (id) => rpcError(code, message, id)),
    {
      status,
      headers: { 'content-type': 'application/json; charset=utf-8', ...headers, ...fields },
    },
  );
}

function bodyFor(
  to: Envelope | Malformed | undefined,
  errorFor: (id: Uint8Array) => Uint8Array<ArrayBuffer>,
): Uint8Array<ArrayBuffer> {
  if (to === undefined || to.kind === 'malformed') return errorFor(NULL_ID);
  if (to.kind === 'single') return errorFor(to.element.kind === 'notification' ? NULL_ID : to.element.id);
  const ids = to.elements.flatMap((element) => (element.kind === 'notification' ? [] : [element.id]));
  if (ids.length === 0) return errorFor(NULL_ID);
  const parts = ids.flatMap((id, i) => [i === 0 ? OPEN : COMMA, errorFor(id)]);
  return Buffer.concat([...parts, CLOSE]);
}

const OPEN = Buffer.from('[');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from(']');
