import type { Clock } from '../../shared/clock.ts';
import { extractApiKey } from '../../shared/keys/carrier.ts';
import type { Identify } from '../../shared/keys/identify.ts';
import { actorOf, type By } from '../accounts/audit.ts';
import { isSameOrigin, type ViewerOf } from '../auth/auth-service.ts';
import type { WebhookFilter } from '../webhooks/send-again.ts';
import { DELIVERY_STATES } from '../outbox/delivery-state.ts';
import { type Takeover, TAKEOVERS } from '../webhooks/change.ts';
import type { ApiRefusal } from './refusal.ts';
import type { Enter } from './request-log.ts';

/** Whose webhooks a request is about and who sends it, or why it is refused. */
type ApiAdmission = Readonly<{ kind: 'admitted'; by: By }> | ApiRefusal;

/** Lets a request in, once its caller is known and has not sent too many. */
export type Admit = (request: Request) => ApiAdmission | Promise<ApiAdmission>;

type AdmitDeps = Readonly<{
  identify: Identify;
  enter: Enter;
  clock: Pick<Clock, 'monotonic'>;
  session?: SessionDeps | undefined;
}>;

type SessionDeps = Readonly<{
  viewerOf: ViewerOf;
  /** The console's. */
  origin: string;
  /** The rate of a user, which is that of a key (docs/spec.md 6). */
  enter: Enter<string>;
}>;

const READS = new Set(['GET', 'HEAD']);

/** Admits by the account's key, or without a key by a session; a wrong key is never made good by a session. */
export function createAdmit({ identify, enter, clock, session }: AdmitDeps): Admit {
  return function admit(request) {
    const carried = extractApiKey(request.headers, request.url);
    if (carried.kind === 'none' && session !== undefined) return admitBySession(session, request);
    const identity = identify(carried);
    if (identity.kind !== 'known') return identity;
    const { keyId, accountId } = identity.caller;
    const entry = enter(keyId, clock.monotonic());
    if (entry.kind !== 'entered') return entry;
    return { kind: 'admitted', by: { accountId, actor: { kind: 'key', keyId } } };
  };

  async function admitBySession(deps: SessionDeps, request: Request): Promise<ApiAdmission> {
    const viewer = await deps.viewerOf(request);
    if (viewer?.accountId === undefined) return { kind: 'missing-key' };
    // Cookies come along with requests that other sites made: changes only from the console's own pages.
    if (!READS.has(request.method) && !isSameOrigin(request, deps.origin)) return { kind: 'other-origin' };
    const { accountId, role, userId } = viewer;
    const entry = deps.enter(userId, clock.monotonic());
    if (entry.kind !== 'entered') return entry;
    return { kind: 'admitted', by: { accountId, actor: actorOf(userId, role) } };
  }
}

type MemberRead<T> =
  { readonly kind: 'read'; readonly value: T } | { readonly kind: 'malformed-body'; readonly text: string };

/** A member of a request's body. `read` gives `undefined` for a value that it does not accept. */
type Field<Value> = Readonly<{
  /** In OpenAPI's words. */
  schema: object;
  /** The end of a sentence for who sent another value. */
  must: string;
  /** The complaint when it is not given; absent, there is none. */
  missing?: string;
  read(value: unknown): Value | undefined;
}>;
export type Fields = Readonly<Record<string, Field<unknown>>>;

/** The members that were read; one that is not given is absent. */
export type Members<Some extends Fields> = {
  readonly [Name in keyof Some]?: Exclude<ReturnType<Some[Name]['read']>, undefined>;
};

const textIn = (value: unknown) => (typeof value === 'string' ? value : undefined);

/** The settings of a webhook that a customer chooses. */
export const SETTINGS = {
  url: {
    schema: { type: 'string', description: 'https, on the public internet' },
    must: 'be a string',
    read: textIn,
  },
  programs: {
    schema: {
      anyOf: [{ type: 'array', items: { type: 'string' }, minItems: 1 }, { type: 'null' }],
      description: 'Addresses of watched programs; null for all',
    },
    must: 'be an array of strings, or null for all',
    read: (value: unknown) => (value === null || isTexts(value) ? value : undefined),
  },
  description: { schema: { type: 'string', maxLength: 200 }, must: 'be a string', read: textIn },
};
export const NEW_SETTINGS = { ...SETTINGS, url: { ...SETTINGS.url, missing: 'url is missing' } };

/** When a rotated secret takes over. */
export const TAKEOVER = {
  takes_over: {
    schema: { type: 'string', enum: Object.keys(TAKEOVERS), default: '24h' },
    must: `be one of ${Object.keys(TAKEOVERS).join(', ')}`,
    read: (value: unknown) => (isTakeover(value) ? value : undefined),
  },
};

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

const AN_INSTANT = 'be an instant such as 2026-11-20T09:30:00Z';

/** Since when failed deliveries are meant, in Unix milliseconds. */
export const SINCE = {
  since: {
    schema: { type: 'string', format: 'date-time' },
    must: AN_INSTANT,
    missing: `since must ${AN_INSTANT}`,
    read(value: unknown) {
      const ms = typeof value === 'string' && ISO.test(value) ? Date.parse(value) : Number.NaN;
      return Number.isNaN(ms) ? undefined : ms;
    },
  },
};

/** Reads a request's JSON object, which has no members when the body is empty. The server bounds its length. */
export async function readBody<Some extends Fields>(
  request: Request,
  fields: Some,
): Promise<MemberRead<Members<Some>>> {
  let body: unknown;
  try {
    const text = await request.text();
    body = text === '' ? {} : JSON.parse(text);
  } catch {
    return malformed('The body is not JSON');
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return malformed('The body must be a JSON object');
  const given = new Map(Object.entries(body));
  const unknown = [...given.keys()].find((name) => !Object.hasOwn(fields, name));
  if (unknown !== undefined) return malformed(`Unknown member: ${unknown.slice(0, 64)}`);
  const members: Record<string, unknown> = {};
  for (const [name, { read, must }] of Object.entries(fields)) {
    if (!given.has(name)) continue;
    members[name] = read(given.get(name));
    if (members[name] === undefined) return malformed(`${name} must ${must}`);
  }
  for (const [name, { missing }] of Object.entries(fields))
    if (missing !== undefined && !given.has(name)) return malformed(missing);
  // Each was read by the field of its name.
  return { kind: 'read', value: members as Members<Some> };
}

/** The longest key that is taken, in characters. */
export const IDEMPOTENCY_KEY_MAX = 255;
const KEY = new RegExp(
  `^(?:"([ !#-[\\]-~]{1,${IDEMPOTENCY_KEY_MAX}})"|([!#-[\\]-~]{1,${IDEMPOTENCY_KEY_MAX}}))$`,
);

/** The name that a caller gave a request so that it may be repeated: a string of RFC 9651, or its characters alone. */
export function readIdempotencyKey(headers: Headers): MemberRead<string | undefined> {
  const given = headers.get('idempotency-key');
  if (given === null) return { kind: 'read', value: undefined };
  const [, quoted, bare] = KEY.exec(given) ?? [];
  const value = quoted ?? bare;
  return value === undefined
    ? malformed(`Idempotency-Key must be 1 to ${IDEMPOTENCY_KEY_MAX} printable ASCII characters in quotes`)
    : { kind: 'read', value };
}

function malformed(text: string): Extract<MemberRead<never>, { kind: 'malformed-body' }> {
  return { kind: 'malformed-body', text };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function isTakeover(value: unknown): value is Takeover {
  return typeof value === 'string' && Object.hasOwn(TAKEOVERS, value);
}

const LIMIT = 50;
const LIMIT_MAX = 100;

/** The page of deliveries that a query asks for: `state`, `limit` from 1 to 100, and the `cursor` of the page before. */
export function pageFrom(webhookId: string, query: URLSearchParams): MemberRead<WebhookFilter> {
  const [limitText, stateText, cursor] = ['limit', 'state', 'cursor'].map((name) => query.get(name));
  const limit = limitText ? Number(limitText) : LIMIT;
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX)
    return malformed(`limit must be from 1 to ${LIMIT_MAX}`);
  const state = DELIVERY_STATES.find((known) => known === stateText);
  if (stateText && state === undefined)
    return malformed(`state must be one of ${DELIVERY_STATES.join(', ')}`);
  const [, atMs, id] = /^(\d{1,15})_([0-9a-f-]{36})$/.exec(cursor ?? '') ?? [];
  if (cursor && id === undefined) return malformed('cursor is of no page');
  const after = id === undefined ? undefined : { createdAtMs: Number(atMs), id };
  return { kind: 'read', value: { webhookId, limit, ...(state && { state }), ...(after && { after }) } };
}

/** The cursor of the page that follows `rows`; null when they are fewer than `limit`. */
export function nextCursor(rows: readonly { createdAtMs: number; id: string }[], limit: number) {
  const last = rows.at(-1);
  return last === undefined || rows.length < limit ? null : `${last.createdAtMs}_${last.id}`;
}
