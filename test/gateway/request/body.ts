import { type BodyRead, type Element, readEnvelope } from '../../../gateway/request/envelope.ts';
import type { MemberText } from '../json/json-text.ts';

export const textOf = (bytes: Uint8Array) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

/** What a body is that is read at once, however long it is. */
export function readAtOnce(body: string | Uint8Array, elementsMax = 100): BodyRead {
  const read = readEnvelope(Buffer.from(body), elementsMax, Infinity);
  if (read instanceof Promise) throw new Error('a body was read in slices');
  return read;
}

/** What JSON.parse says of the bytes; `undefined` when they are not UTF-8 or not JSON. */
export function parsed(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) };
  } catch {
    return undefined;
  }
}

type Summary =
  Readonly<{ kind: string; id?: string; method?: string; params?: string | undefined }> | undefined;

/** What an element says, to compare. */
export function summary(element: Element | undefined): Summary {
  if (element === undefined || element.kind === 'notification') return element;
  if (element.kind === 'invalid') return { kind: 'invalid', id: textOf(element.id) };
  const { kind, id, method, params } = element;
  return { kind, id: textOf(id), method, params: params === undefined ? undefined : textOf(params) };
}

/** The rules written a second time, over parsed members. */
export function expectedOf(members: readonly MemberText[]): Summary {
  const named = (name: string) =>
    members.filter((member) => JSON.parse(member.name) === name).map(({ value }) => value);
  const all = {
    jsonrpc: named('jsonrpc'),
    id: named('id'),
    method: named('method'),
    params: named('params'),
  };
  const id = all.id[0];
  if (all.id.length > 1 || (id !== undefined && !isAnswerable(id))) return { kind: 'invalid', id: 'null' };
  const wrong = { kind: 'invalid', id: id ?? 'null' };
  if (Object.values(all).some(({ length }) => length > 1)) return wrong;
  const value = (texts: readonly string[]): unknown =>
    texts[0] === undefined ? undefined : JSON.parse(texts[0]);
  const method = value(all.method);
  if (value(all.jsonrpc) !== '2.0' || typeof method !== 'string') return wrong;
  if (!['object', 'undefined'].includes(typeof value(all.params))) return wrong;
  return id === undefined ? { kind: 'notification' } : { kind: 'call', id, method, params: all.params[0] };
}

function isAnswerable(id: string): boolean {
  if (/^\d+$/.test(id)) return BigInt(id) < 2n ** 64n;
  return id === 'null' || id.startsWith('"');
}
