/** The key that a request carries. Two carriers with different values are a conflict, never a choice. */
export type Carried =
  | { readonly kind: 'none' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'conflict' };

/** The fields of a request's head, by lower-case name. */
export type HeadFields = Pick<Headers, 'get' | 'has'>;

/** The challenge of a 401: the one that every 401 has (RFC 9110 11.6.1), and that to a key that is not taken (RFC 6750, 3). */
export const KEY_CHALLENGE = 'Bearer';
export const INVALID_KEY = 'Invalid or inactive API key';
export const INVALID_KEY_CHALLENGE = `Bearer error="invalid_token", error_description="${INVALID_KEY}"`;

const NONE: Carried = { kind: 'none' };
const PARAMETER = 'api-key';
/** The query as nearly every SDK sends it: the key alone, with nothing to decode. */
const QUERY = '?api-key=';
const PLAIN = /^\w+$/;

/**
 * The key of a request as text (docs/spec.md 1): header `x-token`, header `Authorization: Bearer`, query `api-key`.
 * Empty carriers count as absent; the same value twice is one key.
 */
export function extractApiKey(headers: HeadFields, url: string): Carried {
  const token = headers.get('x-token');
  const authorization = headers.get('authorization');
  const query = url.indexOf('?');
  if (token === null && authorization === null && query !== -1 && url.startsWith(QUERY, query)) {
    const text = url.slice(query + QUERY.length);
    if (PLAIN.test(text)) return { kind: 'text', text };
  }
  if (token !== null && authorization === null && query === -1 && PLAIN.test(token)) {
    return { kind: 'text', text: token };
  }
  let found: string | undefined;
  let conflict = false;
  const note = (text: string | undefined) => {
    if (text === undefined || text === '') return;
    if (found !== undefined && found !== text) conflict = true;
    found = text;
  };
  // A header line sent twice arrives joined with a comma, which no key holds.
  for (const text of token?.split(',') ?? []) note(trimmed(text));
  for (const text of authorization?.split(',') ?? []) note(bearerOf(text));
  if (query !== -1) for (const value of parametersOf(url.slice(query + 1))) note(value);
  if (conflict) return { kind: 'conflict' };
  return found === undefined ? NONE : { kind: 'text', text: found };
}

/** Whether a request without a key has one where other services read theirs, and none is taken here. */
export function isKeyMisplaced(headers: HeadFields, url: string): boolean {
  const parameters = url.match(/[?&](?:apikey|api[-_]key)(?==)/gi) ?? [];
  return headers.has('x-api-key') || parameters.some((each) => !each.endsWith(PARAMETER));
}

/** The token of a Bearer header; the scheme is case-insensitive (RFC 9110 11.1). Other schemes carry no key. */
function bearerOf(header: string): string | undefined {
  const [, token] = /^bearer +(.*)$/i.exec(trimmed(header)) ?? [];
  return token === undefined ? undefined : trimmed(token);
}

/** Without the blanks of HTTP around it (RFC 9110 5.6.3), and no others: another reader would not take those for blanks. */
export function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

const isBlank = (code: number) => code === 0x20 || code === 0x09;

/** Every `api-key` in a query string. `URL` is not used: it costs more than the rest of this file together. */
function* parametersOf(query: string): Generator<string> {
  const end = query.indexOf('#');
  for (const pair of (end === -1 ? query : query.slice(0, end)).split('&')) {
    const equals = pair.indexOf('=');
    if (equals === -1 || decoded(pair.slice(0, equals)) !== PARAMETER) continue;
    yield trimmed(decoded(pair.slice(equals + 1)));
  }
}

/** Percent-decoded text, or the text itself when it is not valid: it will be an unknown key. */
function decoded(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
