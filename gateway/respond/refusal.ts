import { unreachable } from '../../shared/brand.ts';
import type { Identity } from '../../shared/keys/source.ts';
import { arrayOf } from '../json/slices.ts';
import { type Charge, rateFields, retryAfterSeconds } from '../limits/charge.ts';
import type { Barred } from '../request/auth.ts';
import { type Envelope, type Malformed, NULL_ID, rpcError } from '../request/envelope.ts';
import type { BodyRefusal, HeadRefusal } from '../request/http.ts';

/** Invalid Request (JSON-RPC 2.0, section 5.1). */
const INVALID_REQUEST = -32600;

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

/** Header fields of an answer, by name. */
export type Fields = Record<string, string>;

/** Status, JSON-RPC code, message and header fields of a refusal. */
type Row = readonly [status: number, code: number, message: string, fields?: Fields];

/** The JSON-RPC code is minus the status where no standard code fits. */
function rowOf(refusal: Refusal): Row {
  switch (refusal.kind) {
    case 'missing-key':
      return [401, -401, 'Missing API key'];
    case 'invalid-key':
      return [401, -401, 'Invalid or inactive API key'];
    case 'over-rate':
      return [429, -429, 'Rate limit exceeded', retryAfter(refusal.waitMs, rateFields(refusal.rate))];
    case 'too-many-failed-keys':
      return [429, -429, 'Rate limit exceeded', retryAfter(refusal.waitMs)];
    case 'over-scans':
      return [429, -429, `Rate limit exceeded: at most ${refusal.max} scans at once`, retryAfter(0)];
    case 'out-of-credits':
      return [402, -402, 'Trial credits used up', rateFields(refusal.rate)];
    case 'check-unavailable':
      return [503, -503, 'Key check unavailable', retryAfter(0)];
    case 'credits-unavailable':
      return [503, -503, 'Credit check unavailable', retryAfter(0)];
    case 'no-backend':
      return [503, -503, 'No backend available', retryAfter(0)];
    case 'malformed':
      return [400, refusal.code, refusal.reason];
    case 'body-too-large':
      return [413, INVALID_REQUEST, 'Request body too large', refusal.isEndless ? CLOSE_CONNECTION : {}];
    case 'not-json':
      return [415, INVALID_REQUEST, refusal.reason];
    case 'not-post':
      return [405, INVALID_REQUEST, refusal.reason, { allow: 'OPTIONS, POST' }];
    default:
      return unreachable(refusal);
  }
}

const CLOSE_CONNECTION: Fields = { connection: 'close' };

/** `retry-after` of at least one second, beside other fields. */
function retryAfter(waitMs: number, fields: Fields = {}): Fields {
  return { 'retry-after': String(retryAfterSeconds(waitMs)), ...fields };
}

/** A refusal as the error of one call of a batch. */
export function refusalError(refusal: Refusal, id: Uint8Array): Uint8Array<ArrayBuffer> {
  const [, code, message] = rowOf(refusal);
  return rpcError(code, message, id).bytes;
}

/**
 * The finished answer. `to` supplies the ids: one error object for each of its calls, or one with id null. `fields`
 * are headers that only the stage that refuses knows.
 */
export function refuse(refusal: Refusal, to?: Envelope | Malformed, fields: Fields = {}): Response {
  const [status, code, message, own] = rowOf(refusal);
  const elements = to === undefined || to.kind === 'malformed' ? [] : to.elements;
  const errors = elements.flatMap((element) =>
    element.kind === 'notification' ? [] : [rpcError(code, message, element.id).bytes],
  );
  const [first = rpcError(code, message, NULL_ID).bytes] = errors;
  const body = to?.kind === 'batch' && errors.length > 0 ? arrayOf(errors) : first;
  return new Response(body, { status, headers: { 'content-type': JSON_TYPE, ...own, ...fields } });
}

export const JSON_TYPE = 'application/json; charset=utf-8';
