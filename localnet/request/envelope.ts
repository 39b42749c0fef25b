/*
 * The body of a request, read as jsonrpc-core 18 reads it: what has the shape of a call is one, what only has a good
 * id is an invalid request, and anything else makes the whole body unreadable, batches included.
 */
import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  parseJson,
  printJson,
} from '../json/value.ts';

/** One element of a body. */
export type Element =
  | Readonly<{ kind: 'call'; method: string; params: Json; idText: string }>
  | Readonly<{ kind: 'notification' }>
  /** A call without a version: answered with an error that has none either. */
  | Readonly<{ kind: 'unversioned'; idText: string }>
  | Readonly<{ kind: 'invalid'; idText: string }>;

/** A whole body. */
type Envelope =
  | Readonly<{ kind: 'single'; element: Element }>
  | Readonly<{ kind: 'batch'; elements: readonly Element[] }>
  | Readonly<{ kind: 'unreadable' }>;

const MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'method', 'params', 'id']);
const U64_MAX = 18446744073709551615n;

/** Reads a body. */
export function readEnvelope(text: string): Envelope {
  let body: Json;
  try {
    body = parseJson(text);
  } catch {
    return { kind: 'unreadable' };
  }
  if (!isJsonArray(body)) {
    const element = readElement(body);
    return element === undefined ? { kind: 'unreadable' } : { kind: 'single', element };
  }
  const elements: Element[] = [];
  for (const item of body) {
    const element = readElement(item);
    if (element === undefined) return { kind: 'unreadable' };
    elements.push(element);
  }
  return { kind: 'batch', elements };
}

function readElement(item: Json): Element | undefined {
  if (!isJsonObject(item)) return undefined;
  const idText = idTextOf(item.id);
  const isCallShaped = hasShape(item);
  if (!('id' in item) && isCallShaped) return { kind: 'notification' };
  if (idText === undefined) return undefined;
  if (!isCallShaped || typeof item.method !== 'string') return { kind: 'invalid', idText };
  if (item.jsonrpc === undefined || item.jsonrpc === null) return { kind: 'unversioned', idText };
  return { kind: 'call', method: item.method, params: item.params ?? null, idText };
}

function hasShape(item: JsonObject): boolean {
  if (Object.keys(item).some((name) => !MEMBERS.has(name))) return false;
  const { jsonrpc, method, params } = item;
  const isVersion = jsonrpc === undefined || jsonrpc === null || jsonrpc === '2.0';
  const isParams = params === undefined || params === null || isJsonArray(params) || isJsonObject(params);
  return isVersion && isParams && typeof method === 'string';
}

/** The id as it is echoed: a string, a u64 or null; undefined when it is none of these. */
function idTextOf(id: Json | undefined): string | undefined {
  if (id === undefined || id === null) return 'null';
  if (typeof id === 'string') return printJson(id);
  return typeof id === 'bigint' && id >= 0n && id <= U64_MAX ? id.toString() : undefined;
}
