import { INVALID_KEY, INVALID_KEY_CHALLENGE, KEY_CHALLENGE } from '../../shared/keys/carrier.ts';
import type { Identity } from '../../shared/keys/source.ts';
import { unwritableReason } from '../../shared/store/private.ts';
import type { EntryVerdict } from './request-log.ts';

/** Every expected no of the program API (docs/spec.md 3.2). */
export type ApiRefusal =
  | Exclude<Identity, { kind: 'known' }>
  | Exclude<EntryVerdict, { kind: 'entered' }>
  | { readonly kind: 'not-available-yet' }
  | { readonly kind: 'malformed-program-id'; readonly value: string }
  | { readonly kind: 'not-found' }
  /** `conflict`: it does not go with what there is; `unfit`: a value that was read and is not taken. */
  | { readonly kind: 'malformed-body' | 'conflict' | 'unfit' | 'unresolved'; readonly text: string }
  /** `allow` lists the methods that there are, `GET, HEAD` by default. */
  | { readonly kind: 'wrong-method'; readonly allow?: string }
  /** No change is taken now; the text says why. */
  | { readonly kind: 'read-only'; readonly text: string }
  /** A change by a session that did not come from a page of the console. */
  | { readonly kind: 'other-origin' }
  | { readonly kind: 'broken' };

/** Turns an error that was thrown into a refusal: a database that cannot be written is no fault of the program. */
export function thrownRefusal(error: unknown): Extract<ApiRefusal, { kind: 'read-only' | 'broken' }> {
  const reason = unwritableReason(error);
  if (reason === undefined) return { kind: 'broken' };
  const text = `The database cannot be written now: ${reason}. Nothing was changed. Try again in a moment.`;
  return { kind: 'read-only', text };
}

/** A first reading and a key check that stumbled both take seconds at most. */
const RETRY_SOON = { 'retry-after': '1' };

/** Refusals whose text is always the same. */
const FIXED = {
  'missing-key': [401, 'Missing API key', { 'www-authenticate': KEY_CHALLENGE }],
  'invalid-key': [401, INVALID_KEY, { 'www-authenticate': INVALID_KEY_CHALLENGE }],
  'check-unavailable': [503, 'Key check unavailable', RETRY_SOON],
  'not-available-yet': [503, 'not available yet', RETRY_SOON],
  'not-found': [404, 'Not found'],
  'other-origin': [403, "With a session, changes are accepted only from the console's own pages"],
  broken: [500, 'Internal error'],
} satisfies Record<string, readonly [status: number, text: string, headers?: Record<string, string>]>;
const STATUSES = { 'malformed-body': 400, conflict: 409, unfit: 422 };

/** The refusal as `{"error": text}` with its status; the texts of docs/spec.md 3.2 are verbatim. */
export function refusalResponse(refusal: ApiRefusal): Response {
  switch (refusal.kind) {
    case 'over-rate':
      return errorResponse(429, 'Rate limit exceeded', { 'retry-after': String(refusal.retryAfterSeconds) });
    case 'malformed-program-id':
      return errorResponse(400, `Invalid program_id: ${refusal.value}`);
    case 'wrong-method':
      return errorResponse(405, 'Method not allowed', { allow: refusal.allow ?? 'GET, HEAD' });
    case 'malformed-body':
    case 'conflict':
    case 'unfit':
      return errorResponse(STATUSES[refusal.kind], refusal.text);
    case 'unresolved':
    case 'read-only':
      return errorResponse(503, refusal.text, RETRY_SOON);
    default: {
      const [status, text, headers] = FIXED[refusal.kind];
      return errorResponse(status, text, headers);
    }
  }
}

function errorResponse(status: number, error: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error }, { status, headers: { ...headers, 'cache-control': 'no-store' } });
}
