import type { Clock } from '../../shared/clock.ts';
import { extractApiKey } from '../../shared/keys/carrier.ts';
import type { Identify } from '../../shared/keys/identify.ts';
import { actorOf, type By } from '../accounts/audit.ts';
import { isSameOrigin, type ViewerOf } from '../auth/auth-service.ts';
import type { WebhookFilter } from '../webhooks/send-again.ts';
import type { DeliveryState } from '../outbox/outcome.ts';
import { type Takeover, TAKEOVERS } from '../webhooks/change.ts';
import type { Settings } from '../webhooks/settings.ts';
import type { Refusal } from './refusal.ts';
import type { Enter } from './request-log.ts';

/** Whose webhooks a request is about and who asks, or why nobody is let in. */
type Admission = Readonly<{ kind: 'admitted'; by: By }> | Refusal;

/** Lets a request in, once its caller is known and has not asked too often. */
export type Admit = (request: Request) => Admission | Promise<Admission>;

/** Admits by a request that carries no key, such as one from the console; `undefined`: it carries nothing else either. */
type AdmitBySession = (request: Request) => Promise<Admission | undefined>;

type AdmitDeps = Readonly<{
  identify: Identify;
  enter: Enter;
  clock: Clock;
  bySession?: AdmitBySession | undefined;
}>;

/**
 * Admits by the account's key, or by a session where no key is carried: a key that is wrong is never made good by a
 * session. The key comes first and its rate second, as with the programs.
 */
export function createAdmit({ identify, enter, clock, bySession }: AdmitDeps): Admit {
  return function admit(request) {
    const carried = extractApiKey(request.headers, request.url);
    const identity = identify(carried);
    if (carried.kind === 'none' && bySession !== undefined)
      return bySession(request).then((admission) => admission ?? { kind: 'missing-key' });
    if (identity.kind !== 'known') return identity;
    const { keyId, accountId } = identity.caller;
    const entry = enter(keyId, clock.monotonic());
    if (entry.kind !== 'entered') return entry;
    return { kind: 'admitted', by: { accountId, actor: { kind: 'key', keyId } } };
  };
}

const READS = new Set(['GET', 'HEAD']);

type SessionDeps = Readonly<{
  viewerOf: ViewerOf;
  /** The console's. */
  origin: string;
  /** The rate of a user, which is that of a key (docs/spec.md 6). */
  enter: Enter<string>;
  clock: Pick<Clock, 'monotonic'>;
}>;

/**
 * Admits to an API by the session of a viewer with an account. Cookies come along with requests that other sites made,
 * so for a change a session counts only from the console's own pages.
 */
export function createAdmitBySession({ viewerOf, origin, enter, clock }: SessionDeps): AdmitBySession {
  return async function admitBySession(request) {
    const viewer = await viewerOf(request);
    if (viewer?.accountId === undefined) return undefined;
    if (!READS.has(request.method) && !isSameOrigin(request, origin)) return { kind: 'other-origin' };
    const { accountId, role, userId } = viewer;
    const entry = enter(userId, clock.monotonic());
    if (entry.kind !== 'entered') return entry;
    return { kind: 'admitted', by: { accountId, actor: actorOf(userId, role) } };
  };
}

export type Read<T> =
  { readonly kind: 'read'; readonly value: T } | { readonly kind: 'malformed-body'; readonly text: string };

type Members = Readonly<Record<string, unknown>>;

/** The members of a request's JSON object; none when its body is empty. The server bounds its length. */
async function readMembers(request: Request, known: readonly string[]): Promise<Read<Members>> {
  let value: unknown;
  try {
    const text = await request.text();
    value = text === '' ? {} : JSON.parse(text);
  } catch {
    return malformed('The body is not JSON');
  }
  if (!isMembers(value)) return malformed('The body must be a JSON object');
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  return unknown === undefined
    ? { kind: 'read', value }
    : malformed(`Unknown member: ${unknown.slice(0, 64)}`);
}

/** What a customer sets of a webhook; what is not given is absent. */
export async function readSettings(request: Request): Promise<Read<Partial<Settings>>> {
  const read = await readMembers(request, ['url', 'programs', 'description']);
  if (read.kind !== 'read') return read;
  const { url, programs, description } = read.value;
  if (url !== undefined && typeof url !== 'string') return malformed('url must be a string');
  if (programs !== undefined && programs !== null && !isTexts(programs))
    return malformed('programs must be an array of strings, or null for all');
  if (description !== undefined && typeof description !== 'string')
    return malformed('description must be a string');
  const value = {
    ...(url !== undefined && { url }),
    ...(programs !== undefined && { programs }),
    ...(description !== undefined && { description }),
  };
  return { kind: 'read', value };
}

/** When a rotated secret takes over; in a day, unless told otherwise. */
export async function readTakeover(request: Request): Promise<Read<Takeover>> {
  const read = await readMembers(request, ['takes_over']);
  if (read.kind !== 'read') return read;
  const { takes_over: given = '24h' } = read.value;
  return isTakeover(given)
    ? { kind: 'read', value: given }
    : malformed(`takes_over must be one of ${Object.keys(TAKEOVERS).join(', ')}`);
}

/** Since when failed deliveries are meant, in Unix milliseconds. */
export async function readSince(request: Request): Promise<Read<number>> {
  const read = await readMembers(request, ['since']);
  if (read.kind !== 'read') return read;
  const { since } = read.value;
  const sinceMs = typeof since === 'string' && ISO.test(since) ? Date.parse(since) : Number.NaN;
  return Number.isNaN(sinceMs)
    ? malformed('since must be an instant such as 2026-11-20T09:30:00Z')
    : { kind: 'read', value: sinceMs };
}

/** The longest key that is taken, in characters. */
export const IDEMPOTENCY_KEY_MAX = 255;
const KEY = new RegExp(
  `^(?:"([ !#-[\\]-~]{1,${IDEMPOTENCY_KEY_MAX}})"|([!#-[\\]-~]{1,${IDEMPOTENCY_KEY_MAX}}))$`,
);

/** The name that a caller gave a request so that it may be repeated: a string of RFC 9651, or its characters alone. */
export function readIdempotencyKey(headers: Headers): Read<string | undefined> {
  const given = headers.get('idempotency-key');
  if (given === null) return { kind: 'read', value: undefined };
  const [, quoted, bare] = KEY.exec(given) ?? [];
  const value = quoted ?? bare;
  return value === undefined
    ? malformed(`Idempotency-Key must be 1 to ${IDEMPOTENCY_KEY_MAX} printable ASCII characters in quotes`)
    : { kind: 'read', value };
}

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

function malformed(text: string): Extract<Read<never>, { kind: 'malformed-body' }> {
  return { kind: 'malformed-body', text };
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function isTakeover(value: unknown): value is Takeover {
  return typeof value === 'string' && Object.hasOwn(TAKEOVERS, value);
}

const LIMIT = 50;
const LIMIT_MAX = 100;
const STATES: readonly DeliveryState[] = [
  'queued',
  'attempting',
  'retry_scheduled',
  'delivered',
  'failed',
  'skipped',
  'cancelled',
];

/** The page of deliveries that a query asks for: `state`, `limit` from 1 to 100, and the `cursor` of the page before. */
export function pageFrom(webhookId: string, query: URLSearchParams): Read<WebhookFilter> {
  const [limitText, stateText, cursor] = ['limit', 'state', 'cursor'].map((name) => query.get(name));
  const limit = limitText ? Number(limitText) : LIMIT;
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX)
    return malformed(`limit must be from 1 to ${LIMIT_MAX}`);
  const state = STATES.find((known) => known === stateText);
  if (stateText && state === undefined) return malformed(`state must be one of ${STATES.join(', ')}`);
  const [, atMs, id] = /^(\d{1,15})_([0-9a-f-]{36})$/.exec(cursor ?? '') ?? [];
  if (cursor && id === undefined) return malformed('cursor is of no page');
  const after = id === undefined ? undefined : { createdAtMs: Number(atMs), id };
  return { kind: 'read', value: { webhookId, limit, ...(state && { state }), ...(after && { after }) } };
}

/** The cursor of the page that follows `rows`; null when they are fewer than were asked for. */
export function nextCursor(
  rows: readonly { createdAtMs: number; id: string }[],
  limit: number,
): string | null {
  const last = rows.at(-1);
  return last === undefined || rows.length < limit ? null : `${last.createdAtMs}_${last.id}`;
}
