import type { Settings } from '../../webhooks/settings.ts';
import { type Takeover, TAKEOVERS } from '../../webhooks/rotate.ts';

export type Read<T> =
  { readonly kind: 'read'; readonly value: T } | { readonly kind: 'malformed-body'; readonly text: string };

type Members = Readonly<Record<string, unknown>>;

/** The members of a request's JSON object; none when its body is empty. The server bounds its length. */
export async function readMembers(request: Request, known: readonly string[]): Promise<Read<Members>> {
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
