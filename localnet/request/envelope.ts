/*
 * The body of a request, read as jsonrpc-core 18 reads it: what has the shape of a call is one, what only has a good
 * id is an invalid request, and anything else makes the whole body unreadable, batches included.
 */
import { isJsonArray, isJsonObject, type Json, parseJson, printJson } from '../json/value.ts';

/** One element of a body that is answered. */
export type Element =
  | Readonly<{ kind: 'call'; method: string; params: Json; idText: string }>
  /** A call without a version: answered with an error that has none either. */
  | Readonly<{ kind: 'unversioned'; idText: string }>
  | Readonly<{ kind: 'invalid'; idText: string }>;

const MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'method', 'params', 'id']);
const U64_MAX = 18446744073709551615n;

/** Reads a body; undefined when it is unreadable. Notifications are neither carried out nor answered. */
export function readEnvelope(text: string) {
  let body: Json;
  try {
    body = parseJson(text);
  } catch {
    return undefined;
  }
  const elements: Element[] = [];
  for (const item of isJsonArray(body) ? body : [body]) {
    const element = readElement(item);
    if (element === 'unreadable') return undefined;
    if (element !== 'notification') elements.push(element);
  }
  return { isBatch: isJsonArray(body), elements };
}

function readElement(item: Json): Element | 'notification' | 'unreadable' {
  if (!isJsonObject(item)) return 'unreadable';
  const { jsonrpc = null, method, params = null, id } = item;
  const isCall =
    Object.keys(item).every((name) => MEMBERS.has(name)) &&
    (jsonrpc === null || jsonrpc === '2.0') &&
    (params === null || isJsonArray(params) || isJsonObject(params));
  if (!('id' in item) && isCall && typeof method === 'string') return 'notification';
  const idText = idTextOf(id);
  if (idText === undefined) return 'unreadable';
  if (!isCall || typeof method !== 'string') return { kind: 'invalid', idText };
  return jsonrpc === null ? { kind: 'unversioned', idText } : { kind: 'call', method, params, idText };
}

/** The id as it is echoed: a string, a u64 or null; undefined when it is none of these. */
function idTextOf(id: Json | undefined): string | undefined {
  if (id === undefined || id === null) return 'null';
  if (typeof id === 'string') return printJson(id);
  return typeof id === 'bigint' && id >= 0n && id <= U64_MAX ? id.toString() : undefined;
}
