import { isUtf8 } from 'node:buffer';
import {
  CLOSE_OBJECT,
  DEEP,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  afterItems,
  afterSpace,
  afterString,
  afterValue,
  isAt,
  isNull,
  textIn,
} from '../json/scan.ts';
import { joined } from '../json/slices.ts';

/** One JSON-RPC call. `id` and `params` are the caller's own bytes, so 64-bit numbers and escapes survive. */
export type Call = Readonly<{
  kind: 'call';
  id: Uint8Array;
  method: string;
  params: Uint8Array | undefined;
}>;

/** The length of what `writeRequest` writes. */
export function requestBytes({ id, params }: Call, member: Uint8Array): number {
  const paramsBytes = params === undefined ? 0 : BEFORE_PARAMS.length + params.length;
  return BEFORE_ID.length + id.length + member.length + paramsBytes + 1;
}

/** Writes `{"jsonrpc":"2.0","id":ID,"method":"NAME","params":PARAMS}` at an index; gives the index behind it. */
export function writeRequest({ id, params }: Call, member: Uint8Array, into: Buffer, at: number): number {
  into.set(BEFORE_ID, at);
  at += BEFORE_ID.length;
  // Calling the runtime costs more than to copy a few bytes.
  for (let i = 0; i < id.length; i++) into[at++] = id[i] ?? 0;
  into.set(member, at);
  at += member.length;
  if (params !== undefined) {
    into.set(BEFORE_PARAMS, at);
    into.set(params, at + BEFORE_PARAMS.length);
    at += BEFORE_PARAMS.length + params.length;
  }
  into[at] = CLOSE_OBJECT;
  return at + 1;
}

/** `,"method":"NAME"`. */
export function methodMember(name: string): Buffer {
  return Buffer.from(`,"method":${JSON.stringify(name)}`);
}

const BEFORE_ID = Buffer.from('{"jsonrpc":"2.0","id":');
const BEFORE_PARAMS = Buffer.from(',"params":');

/** An answer that the gateway makes itself. */
export type OwnAnswer = Readonly<{ kind: 'whole'; bytes: Uint8Array<ArrayBuffer>; encoding: undefined }>;

/** `{"jsonrpc":"2.0","error":{"code":C,"message":"M"},"id":ID}`; `data` with a hint at most: strict clients refuse more. */
export function rpcError(code: number, message: string, id: Uint8Array, hint?: string): OwnAnswer {
  const data = hint === undefined ? undefined : { hint };
  return ownAnswer(`"error":${JSON.stringify({ code, message, data })}`, id);
}

/** `{"jsonrpc":"2.0","result":RESULT,"id":ID}`, the result as it is. */
export function rpcResult(result: string | Uint8Array, id: Uint8Array): OwnAnswer {
  return ownAnswer('"result":', id, result);
}

function ownAnswer(member: string, id: Uint8Array, value: string | Uint8Array = ''): OwnAnswer {
  const bytes = joined(['{"jsonrpc":"2.0",', member, value, ',"id":', id, '}']);
  return { kind: 'whole', bytes, encoding: undefined };
}

/** What stands where a call should. Only a `call` is answered by a backend. */
export type Element =
  | Call
  /** A call without an id: it is never executed and never answered (JSON-RPC 2.0, section 4.1). */
  | { readonly kind: 'notification' }
  /** JSON, but no request; `id` is `null` in bytes when the caller's is not known. */
  | { readonly kind: 'invalid'; readonly id: Uint8Array; readonly reason: string };

export const NULL_ID = Buffer.from('null');

/** The members that mean something; others are accepted and not forwarded. */
const NAMES = ['id', 'method', 'params', 'jsonrpc'] as const;
type Name = (typeof NAMES)[number];
type Members = Record<Name, Buffer | undefined>;
const QUOTED = NAMES.map((name) => Buffer.from(`"${name}"`));
const VERSION = Buffer.from('"2.0"');

/** Adds the element at `start`; gives the index after it, `BAD` or `DEEP`. `depth` counts what is open around it. */
function readElement(body: Buffer, start: number, depth: number, elements: Element[]): number {
  if (body[start] !== OPEN_OBJECT) {
    elements.push(invalid(NULL_ID, 'not an object'));
    return afterValue(body, start, depth);
  }
  const members: Members = { id: undefined, method: undefined, params: undefined, jsonrpc: undefined };
  let twice: Name | undefined;
  const end = afterItems(body, start, depth + 1, (_, from, around, nameFrom) => {
    const to = afterValue(body, from, around);
    const name = nameAt(body, nameFrom);
    if (name === undefined) return to;
    // An id that stands twice decides, whatever else does: the answer must not pick one of the two.
    if (members[name] !== undefined && twice !== 'id') twice = name;
    members[name] = body.subarray(from, to);
    return to;
  });
  if (end > 0) elements.push(elementFrom(members, twice));
  return end;
}

function elementFrom(members: Members, twice: Name | undefined): Element {
  const { params, jsonrpc = NULL_ID } = members;
  const id = twice === 'id' ? NULL_ID : idFrom(members.id);
  if (id === undefined) return invalid(NULL_ID, 'id must be a string, an unsigned integer or null');
  if (twice !== undefined) return invalid(id, `two members named ${twice}`);
  if (!isAt(jsonrpc, 0, VERSION) && textIn(jsonrpc) !== '2.0') return invalid(id, 'jsonrpc must be "2.0"');
  const method = textIn(members.method);
  if (method === undefined) return invalid(id, 'method must be a string');
  const isParams =
    params === undefined || params[0] === OPEN_ARRAY || params[0] === OPEN_OBJECT || isNull(params);
  if (!isParams) return invalid(id, 'params must be an array or an object');
  return members.id === undefined ? NOTIFICATION : { kind: 'call', id, method, params };
}

const NOTIFICATION: Element = { kind: 'notification' };

function invalid(id: Uint8Array, reason: string): Element {
  return { kind: 'invalid', id, reason: `Invalid request: ${reason}` };
}

/** The largest id that Agave can answer. */
const U64_MAX = '18446744073709551615';

/** The id verbatim; `NULL_ID` when there is none; `undefined` when it is of a kind that Agave cannot answer. */
function idFrom(slice: Buffer | undefined): Buffer | undefined {
  if (slice === undefined) return NULL_ID;
  if (slice[0] === QUOTE || isNull(slice)) return slice;
  if (slice.length > U64_MAX.length) return undefined;
  for (const digit of slice) if (digit < 0x30 || digit > 0x39) return undefined;
  return slice.length < U64_MAX.length || slice.toString('latin1') <= U64_MAX ? slice : undefined;
}

/** The member whose name begins at `from`, by its decoded name: `"\u0069d"` is `id`. */
function nameAt(bytes: Buffer, from: number): Name | undefined {
  for (let n = 0; n < NAMES.length; n++) if (isAt(bytes, from, QUOTED[n] ?? NULL_ID)) return NAMES[n];
  const text = textIn(bytes.subarray(from, afterString(bytes, from)));
  return NAMES.find((name) => name === text);
}

/** A body as JSON-RPC: one element, or a batch in the caller's order. */
export type Envelope = Readonly<{ kind: 'single' | 'batch'; elements: readonly Element[] }>;

/** A body that is not JSON (-32700), or is JSON but no request (-32600). It is answered with id null. */
export type Malformed = Readonly<{ kind: 'malformed'; code: -32700 | -32600; reason: string }>;

/** The envelope of a body, by one pass over its bytes; a batch is refused at its first element above `batchMax`. */
export function readEnvelope(body: Buffer, batchMax: number): Envelope | Malformed {
  if (!isUtf8(body)) return PARSE_ERROR;
  const start = afterSpace(body, 0);
  const elements: Element[] = [];
  const isBatch = body[start] === OPEN_ARRAY;
  const end = isBatch
    ? afterItems(body, start, 1, (_, from, depth) => {
        const to = readElement(body, from, depth, elements);
        return to > 0 && elements.length > batchMax ? TOO_MANY : to;
      })
    : readElement(body, start, 0, elements);
  if (end === DEEP) return malformed('Invalid request: nested too deeply');
  if (end === TOO_MANY) return malformed(`Batch too large; max ${batchMax}`);
  if (end < 0 || afterSpace(body, end) !== body.length) return PARSE_ERROR;
  if (elements.length === 0) return malformed('Invalid request: empty batch');
  return { kind: isBatch ? 'batch' : 'single', elements };
}

/** Ends the walk over a batch, beside `BAD` and `DEEP`. */
const TOO_MANY = -3;

function malformed(reason: string): Malformed {
  return { kind: 'malformed', code: -32600, reason };
}

const PARSE_ERROR: Malformed = { kind: 'malformed', code: -32700, reason: 'Parse error' };
