import { isUtf8 } from 'node:buffer';
import {
  afterName,
  afterSpace,
  afterString,
  afterValue,
  BAD,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  DEEP,
  OPEN_ARRAY,
  OPEN_OBJECT,
} from '../json/scan.ts';

/** One JSON-RPC call. `id` and `params` are the caller's own bytes, so 64-bit numbers and escapes survive. */
export type Call = Readonly<{
  kind: 'call';
  id: Uint8Array;
  method: string;
  params: Uint8Array | undefined;
}>;

/** What stands where a call should. Only a `call` is answered by a backend. */
export type Element =
  | Call
  /** A call without an id: it is never executed and never answered (JSON-RPC 2.0, section 4.1). */
  | { readonly kind: 'notification' }
  /** JSON, but no request; `id` is `null` in bytes when the caller's cannot be told. */
  | { readonly kind: 'invalid'; readonly id: Uint8Array; readonly reason: string };

/** An element and the index after it; a negative index is the scan's `BAD` or `DEEP` and has no element. */
type Scanned = Readonly<{ element: Element; end: number }>;

export const NULL_ID: Uint8Array = new TextEncoder().encode('null');

/** The members that mean something; others are accepted and not forwarded (DESIGN 3.8). */
type Member = 'jsonrpc' | 'id' | 'method' | 'params';
const QUOTED: Readonly<Record<string, Member>> = {
  '"jsonrpc"': 'jsonrpc',
  '"id"': 'id',
  '"method"': 'method',
  '"params"': 'params',
};

/** Reads the element that starts at `start`, which is not white space. `depth` counts what is open around it. */
export function scanElement(bytes: Uint8Array, start: number, depth: number): Scanned {
  if (bytes[start] !== OPEN_OBJECT) {
    return {
      element: invalid(NULL_ID, 'Invalid request: not an object'),
      end: afterValue(bytes, start, depth),
    };
  }
  const slices: Partial<Record<Member, Uint8Array>> = {};
  let twice: Member | undefined;
  let i = afterSpace(bytes, start + 1);
  if (bytes[i] === CLOSE_OBJECT) return { element: elementFrom(slices, twice), end: i + 1 };
  for (;;) {
    const colon = afterName(bytes, i);
    if (colon === BAD) return FAILED_BAD;
    const name = memberAt(bytes, i);
    const from = afterSpace(bytes, colon);
    const to = afterValue(bytes, from, depth + 1);
    if (to < 0) return to === DEEP ? FAILED_DEEP : FAILED_BAD;
    if (name !== undefined) {
      // An id that stands twice decides, whatever else does: the answer must not pick one of the two.
      if (slices[name] !== undefined && twice !== 'id') twice = name;
      slices[name] = bytes.subarray(from, to);
    }
    i = afterSpace(bytes, to);
    if (bytes[i] === CLOSE_OBJECT) return { element: elementFrom(slices, twice), end: i + 1 };
    if (bytes[i] !== 0x2c) return FAILED_BAD;
    i = afterSpace(bytes, i + 1);
  }
}

function elementFrom(slices: Partial<Record<Member, Uint8Array>>, twice: Member | undefined): Element {
  const id = twice === 'id' ? NULL_ID : idFrom(slices.id);
  if (id === undefined)
    return invalid(NULL_ID, 'Invalid request: id must be a string, an unsigned integer or null');
  if (twice !== undefined) return invalid(id ?? NULL_ID, `Invalid request: two members named ${twice}`);
  const answerTo = slices.id === undefined ? NULL_ID : id;
  if (slices.jsonrpc === undefined || textOf(slices.jsonrpc) !== '2.0') {
    return invalid(answerTo, 'Invalid request: jsonrpc must be "2.0"');
  }
  const method = slices.method === undefined ? undefined : textOf(slices.method);
  if (method === undefined) return invalid(answerTo, 'Invalid request: method must be a string');
  if (!isParams(slices.params))
    return invalid(answerTo, 'Invalid request: params must be an array or an object');
  if (slices.id === undefined) return NOTIFICATION;
  return { kind: 'call', id, method, params: slices.params };
}

const NOTIFICATION: Element = { kind: 'notification' };
const FAILED_BAD: Scanned = { element: NOTIFICATION, end: BAD };
const FAILED_DEEP: Scanned = { element: NOTIFICATION, end: DEEP };

function invalid(id: Uint8Array, reason: string): Element {
  return { kind: 'invalid', id, reason };
}

/** The largest id that Agave can answer. */
const U64_MAX = '18446744073709551615';

/** The id verbatim; `NULL_ID` when there is none; `undefined` when it is of a kind Agave cannot answer (DESIGN 3.8). */
function idFrom(slice: Uint8Array | undefined): Uint8Array | undefined {
  if (slice === undefined) return NULL_ID;
  const first = slice[0];
  if (first === 0x22 || first === 0x6e) return slice;
  if (first === undefined || first < 0x30 || first > 0x39 || slice.length > U64_MAX.length) return undefined;
  const digits = latin1(slice);
  if (!/^\d+$/.test(digits)) return undefined;
  return digits.length < U64_MAX.length || digits <= U64_MAX ? slice : undefined;
}

function isParams(slice: Uint8Array | undefined): boolean {
  return slice === undefined || slice[0] === OPEN_ARRAY || slice[0] === OPEN_OBJECT || slice[0] === 0x6e;
}

/** The member whose name starts at `i`, told by its decoded name: `"\u0069d"` is `id`. */
function memberAt(bytes: Uint8Array, i: number): Member | undefined {
  const quoted = latin1(bytes.subarray(i, afterString(bytes, i)));
  const name = QUOTED[quoted];
  if (name !== undefined || !quoted.includes('\\')) return name;
  // The scan has checked the string's grammar, so it decodes.
  return QUOTED[`"${String(JSON.parse(quoted))}"`];
}

/** A JSON string's text, or `undefined` for another value. */
function textOf(slice: Uint8Array): string | undefined {
  if (slice[0] !== 0x22) return undefined;
  const text = utf8.decode(slice);
  return text.includes('\\') ? String(JSON.parse(text)) : text.slice(1, -1);
}

const utf8 = new TextDecoder();

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

/** A body as JSON-RPC: one element, or a batch in the caller's order. */
export type Envelope =
  | { readonly kind: 'single'; readonly element: Element }
  | { readonly kind: 'batch'; readonly elements: readonly Element[] };

/** A body that is not JSON (-32700), or is JSON but no request (-32600). It is answered with id null. */
export type Malformed = Readonly<{ kind: 'malformed'; code: -32700 | -32600; reason: string }>;

/**
 * The envelope of a body, found by one pass over its bytes; nothing is parsed but the four members of each call.
 * A batch above `batchMax` is refused at its first element too many, without reading the rest.
 */
export function readEnvelope(body: Uint8Array, batchMax: number): Envelope | Malformed {
  if (!isUtf8(body)) return PARSE_ERROR;
  const start = afterSpace(body, 0);
  if (body[start] === OPEN_ARRAY) return readBatch(body, start + 1, batchMax);
  const { element, end } = scanElement(body, start, 0);
  if (end < 0) return end === DEEP ? TOO_DEEP : PARSE_ERROR;
  return afterSpace(body, end) === body.length ? { kind: 'single', element } : PARSE_ERROR;
}

function readBatch(body: Uint8Array, start: number, batchMax: number): Envelope | Malformed {
  const elements: Element[] = [];
  let i = afterSpace(body, start);
  if (body[i] === CLOSE_ARRAY) return afterSpace(body, i + 1) === body.length ? EMPTY_BATCH : PARSE_ERROR;
  for (;;) {
    const { element, end } = scanElement(body, i, 1);
    if (end < 0) return end === DEEP ? TOO_DEEP : PARSE_ERROR;
    if (elements.length === batchMax) return tooLarge(batchMax);
    elements.push(element);
    i = afterSpace(body, end);
    if (body[i] === CLOSE_ARRAY) break;
    if (body[i] !== 0x2c) return PARSE_ERROR;
    i = afterSpace(body, i + 1);
  }
  return afterSpace(body, i + 1) === body.length ? { kind: 'batch', elements } : PARSE_ERROR;
}

const PARSE_ERROR: Malformed = { kind: 'malformed', code: -32700, reason: 'Parse error' };
const TOO_DEEP: Malformed = { kind: 'malformed', code: -32600, reason: 'Invalid request: nested too deeply' };
const EMPTY_BATCH: Malformed = { kind: 'malformed', code: -32600, reason: 'Invalid request: empty batch' };

function tooLarge(batchMax: number): Malformed {
  return { kind: 'malformed', code: -32600, reason: `Batch too large; max ${batchMax}` };
}
