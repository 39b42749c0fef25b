import { unreachable } from '../../shared/brand.ts';
import { retryAfterSeconds } from '../../shared/clock.ts';
import { INVALID_KEY, INVALID_KEY_CHALLENGE, KEY_CHALLENGE } from '../../shared/keys/carrier.ts';
import type { Identity } from '../../shared/keys/source.ts';
import { arrayOf } from '../json/slices.ts';
import { type Charge, rateFields } from '../limits/charge.ts';
import type { Barred } from '../request/auth.ts';
import { type BodyRead, type Malformed, NULL_ID, rpcError } from '../request/envelope.ts';
import { type BodyRefusal, type Fields, type HeadRefusal, RpcResponse } from '../listener/rpc.ts';

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
  /** The account has `max` calls under way, as many as its plan allows. */
  | { readonly kind: 'over-calls'; readonly max: number }
  /** There is no key where one is read, and something that looks like one elsewhere. */
  | { readonly kind: 'misplaced-key' }
  | { readonly kind: 'no-backend' | 'maybe-sent' };

/** Status, JSON-RPC code, message and header fields of a refusal; `hint` stands in the error's `data`. */
type RefusalRow = readonly [status: number, code: number, message: string, fields?: Fields, hint?: string];

const MISSING_KEY = 'Missing API key';
const KEY_HINT =
  'Send the key as the header x-token, as Authorization: Bearer KEY, or as the query parameter api-key';

/** The JSON-RPC code is minus the status where no standard code fits. */
function rowOf(refusal: Refusal): RefusalRow {
  switch (refusal.kind) {
    case 'missing-key':
      return [401, -401, MISSING_KEY, { 'www-authenticate': KEY_CHALLENGE }];
    case 'misplaced-key':
      return [401, -401, MISSING_KEY, { 'www-authenticate': KEY_CHALLENGE }, KEY_HINT];
    case 'invalid-key':
      return [401, -401, INVALID_KEY, { 'www-authenticate': INVALID_KEY_CHALLENGE }];
    case 'over-rate':
      return [429, -429, 'Rate limit exceeded', retryAfter(refusal.waitMs, rateFields(refusal.rate))];
    case 'too-many-failed-keys':
      return [429, -429, 'Rate limit exceeded', retryAfter(refusal.waitMs)];
    case 'over-scans':
      return [429, -429, `Rate limit exceeded: at most ${refusal.max} scans at once`, retryAfter(0)];
    case 'over-calls':
      return [429, -429, `Too many calls at once: at most ${refusal.max}`, retryAfter(0)];
    case 'out-of-credits': {
      const left = { 'x-credits-left': String(refusal.creditsLeft) };
      return [402, -402, 'Trial credits used up', { ...rateFields(refusal.rate), ...left }];
    }
    case 'check-unavailable':
      return [503, -503, 'Key check unavailable', retryAfter(0)];
    case 'credits-unavailable':
      return [503, -503, 'Credit check unavailable', retryAfter(0)];
    case 'no-backend':
      return [503, -503, 'No backend available', retryAfter(0)];
    case 'maybe-sent':
      return [504, -504, 'The transaction may have been sent; ask for its status before sending it again'];
    case 'malformed':
      return [400, refusal.code, refusal.reason];
    case 'body-too-large':
      return [413, INVALID_REQUEST, 'Request body too large'];
    case 'bodies-full':
      return [503, -503, 'Too many request bodies under way', retryAfter(0)];
    case 'not-json':
      return [415, INVALID_REQUEST, refusal.reason];
    case 'not-post':
      return [405, INVALID_REQUEST, refusal.reason, { allow: 'OPTIONS, POST' }];
    default:
      return unreachable(refusal);
  }
}

/** `retry-after` of at least one second, beside other fields. */
function retryAfter(waitMs: number, fields: Fields = {}): Fields {
  return { 'retry-after': String(retryAfterSeconds(waitMs)), ...fields };
}

/** A refusal as the error of one call of a batch. */
export function refusalError(refusal: Refusal, id: Uint8Array): Uint8Array<ArrayBuffer> {
  const [, code, message] = rowOf(refusal);
  return rpcError(code, message, id).bytes;
}

/** The finished answer: an error object for each call of `to`, or one with id null. `fields` are further headers. */
export function refuse(refusal: Refusal, to?: BodyRead, fields: Fields = {}): RpcResponse {
  const [status, code, message, own, hint] = rowOf(refusal);
  const errorFor = (id: Uint8Array) => rpcError(code, message, id, hint).bytes;
  const elements = to !== undefined && 'elements' in to ? to.elements : [];
  const errors = elements.flatMap((element) =>
    element.kind === 'notification' ? [] : [errorFor(element.id)],
  );
  const [first = errorFor(NULL_ID)] = errors;
  const body = to?.kind === 'batch' && errors.length > 0 ? arrayOf(errors) : first;
  return new RpcResponse({ status, fields: { 'content-type': JSON_TYPE, ...own, ...fields }, body });
}

export const JSON_TYPE = 'application/json; charset=utf-8';
