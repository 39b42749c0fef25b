import { isUtf8 } from 'node:buffer';
import {
  CLOSE_OBJECT,
  DEEP,
  OPEN_ARRAY,
  OPEN_OBJECT,
  PAUSED,
  QUOTE,
  type Seer,
  STOPPED,
  Walk,
  afterSpace,
  isAt,
  isNull,
  isTextAt,
  laterTurn,
  SLICE_BYTES,
  takeOfTurn,
  textIn,
} from '../json/scan.ts';
import { joined } from '../json/slices.ts';
import { SEND_ID_BYTES } from './send-id.ts';

/** One JSON-RPC call. `id` and `params` are the caller's own bytes, so 64-bit numbers and escapes survive. */
export type Call = Readonly<{
  kind: 'call';
  id: Uint8Array;
  method: string;
  params: Uint8Array | undefined;
}>;

/** The length of what `writeRequest` writes. */
export function requestBytes({ params }: Call, member: Uint8Array): number {
  const paramsBytes = params === undefined ? 0 : BEFORE_PARAMS.length + params.length;
  return BEFORE_ID.length + SEND_ID_BYTES + member.length + paramsBytes + 1;
}

/** Writes `{"jsonrpc":"2.0","id":ID,"method":"NAME","params":PARAMS}` at an index, under an id of our own; gives the index behind it. */
export function writeRequest(
  { params }: Call,
  id: Uint8Array,
  member: Uint8Array,
  into: Buffer,
  at: number,
): number {
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

/** An answer that the gateway makes itself, with the code of its error; `undefined`: it is a result. */
export type OwnAnswer = Readonly<{
  kind: 'whole';
  bytes: Uint8Array<ArrayBuffer>;
  code: number | undefined;
}>;

/** `{"jsonrpc":"2.0","error":{"code":C,"message":"M"},"id":ID}`; `data` with a hint at most: strict clients refuse more. */
export function rpcError(code: number, message: string, id: Uint8Array, hint?: string): OwnAnswer {
  const data = hint === undefined ? undefined : { hint };
  return ownAnswer(code, `"error":${JSON.stringify({ code, message, data })}`, id);
}

/** `{"jsonrpc":"2.0","result":RESULT,"id":ID}`, the result as it is. */
export function rpcResult(result: string | Uint8Array, id: Uint8Array): OwnAnswer {
  return ownAnswer(undefined, '"result":', id, result);
}

function ownAnswer(
  code: number | undefined,
  member: string,
  id: Uint8Array,
  value: string | Uint8Array = '',
): OwnAnswer {
  const bytes = joined(['{"jsonrpc":"2.0",', member, value, ',"id":', id, '}']);
  return { kind: 'whole', bytes, code };
}

/** An element of a body. Only a `call` is answered by a backend. */
export type Element =
  | Call
  /** A call without an id: it is never executed and never answered (JSON-RPC 2.0, section 4.1). */
  | { readonly kind: 'notification' }
  /** JSON, but no request; `id` is `null` in bytes when the caller's is not known. */
  | { readonly kind: 'invalid'; readonly id: Uint8Array; readonly reason: string };

export const NULL_ID = Buffer.from('null');

/** The members that mean something; others are accepted and not forwarded. */
const NAMES = ['id', 'method', 'params', 'jsonrpc'];
const [ID, METHOD, PARAMS, VERSION, NONE] = [0, 1, 2, 3, -1];
const QUOTED = NAMES.map((name) => Buffer.from(`"${name}"`));
/** The index of the name that begins with a letter; no two begin with the same one. */
const BY_LETTER = new Uint8Array(256);
for (const [n, name] of NAMES.entries()) BY_LETTER[name.charCodeAt(0)] = n;
const TWO = Buffer.from('"2.0"');
/** A call has four, and SDKs add one or two. */
const MEMBERS_MAX = 64;
/** No method that a node or a config knows is longer. */
const METHOD_BYTES_MAX = 1_024;

/** Where the members of the object under way stand in the body: what is no part of an answer or a request needs no slice. */
class Members {
  /** Where each begins, in the order of `NAMES`, and where each ends; 0: there is none. */
  readonly at = [0, 0, 0, 0, 0, 0, 0, 0];
  /** One of them that stands twice; an id that does decides, whatever else does: the answer must not pick one of the two. */
  twice = NONE;
  count = 0;

  add(body: Buffer, from: number, to: number, nameFrom: number): void {
    const n = ++this.count <= MEMBERS_MAX ? nameAt(body, nameFrom) : NONE;
    if (n === NONE) return;
    if (this.at[n] !== 0 && this.twice !== ID) this.twice = n;
    this.at[n] = from;
    this.at[n + NAMES.length] = to;
  }

  clear(): void {
    for (let n = 0; n < NAMES.length; n++) this.at[n] = 0;
    this.twice = NONE;
    this.count = 0;
  }
}

function elementFrom(body: Buffer, { at, twice, count }: Members): Element {
  // Behind the last that was looked at there may be another id.
  if (count > MEMBERS_MAX) return invalid(NULL_ID, `more than ${MEMBERS_MAX} members`);
  const id = twice === ID ? NULL_ID : idIn(memberIn(body, at, ID) ?? NULL_ID);
  if (id === undefined) return invalid(NULL_ID, 'id must be a string, an unsigned integer or null');
  if (id.length > ID_BYTES_MAX) return invalid(NULL_ID, 'id is longer than 64 KB');
  if (twice !== NONE) return invalid(id, `two members named ${NAMES[twice]}`);
  const versionFrom = at[VERSION] ?? 0;
  if (body[versionFrom] !== QUOTE || !isTextAt(body, versionFrom, TWO, '2.0'))
    return invalid(id, 'jsonrpc must be "2.0"');
  const methodFrom = at[METHOD] ?? 0;
  if (body[methodFrom] !== QUOTE) return invalid(id, 'method must be a string');
  const params = memberIn(body, at, PARAMS);
  const isParams =
    params === undefined || params[0] === OPEN_ARRAY || params[0] === OPEN_OBJECT || isNull(params);
  if (!isParams) return invalid(id, 'params must be an array or an object');
  if (at[ID] === 0) return NOTIFICATION;
  return { kind: 'call', id, method: methodAt(body, methodFrom, at[METHOD + NAMES.length] ?? 0), params };
}

function memberIn(body: Buffer, at: Members['at'], n: number): Buffer | undefined {
  return at[n] === 0 ? undefined : body.subarray(at[n], at[n + NAMES.length]);
}

/** The last method at each place of a hash, by its JSON: to make its text anew costs as much as to read the rest of a call. */
const METHODS_READ: { readonly json: Buffer; readonly text: string }[] = [];
const PLACES = 256;

/** The name of a method; of one that nobody serves, because it is too long, it is empty. */
function methodAt(body: Buffer, from: number, to: number): string {
  if (to - from > METHOD_BYTES_MAX) return '';
  let hash = 0;
  for (let i = from; i < to; i++) hash = (31 * hash + (body[i] ?? 0)) | 0;
  const known = METHODS_READ[hash & (PLACES - 1)];
  if (known !== undefined && known.json.length === to - from && isAt(body, from, known.json))
    return known.text;
  const json = Buffer.from(body.subarray(from, to));
  const text = textIn(json) ?? '';
  METHODS_READ[hash & (PLACES - 1)] = { json, text };
  return text;
}

const NOTIFICATION: Element = { kind: 'notification' };

function invalid(id: Uint8Array, reason: string): Element {
  return { kind: 'invalid', id, reason: `Invalid request: ${reason}` };
}

/** A longer id is not written into an answer, or into each of its refusals. */
const ID_BYTES_MAX = 65_536;

/** The largest id that Agave can answer. */
const U64_MAX = '18446744073709551615';

/** The id verbatim; `undefined` when it is of a kind that Agave cannot answer. */
function idIn(slice: Buffer): Buffer | undefined {
  if (slice[0] === QUOTE || isNull(slice)) return slice;
  if (slice.length > U64_MAX.length) return undefined;
  for (let i = 0; i < slice.length; i++) if (!isDigit(slice[i])) return undefined;
  return slice.length < U64_MAX.length || slice.toString('latin1') <= U64_MAX ? slice : undefined;
}

function isDigit(byte = 0): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** The index in `NAMES` of the member whose name begins at `from`, however it is escaped: `"\u0069d"` is `id`. */
function nameAt(bytes: Buffer, from: number): number {
  const likely = BY_LETTER[bytes[from + 1] ?? 0] ?? 0;
  if (isAt(bytes, from, QUOTED[likely] ?? NULL_ID)) return likely;
  return NAMES.findIndex((name, n) => isTextAt(bytes, from, QUOTED[n] ?? NULL_ID, name));
}

/** A body as JSON-RPC: one element, or a batch in the caller's order. */
export type Envelope = Readonly<{ kind: 'single' | 'batch'; elements: readonly Element[] }>;

/** A body that is not JSON (-32700), or is JSON but no request (-32600). It is answered with id null. */
export type Malformed = Readonly<{ kind: 'malformed'; code: -32700 | -32600; reason: string }>;

/** A batch of more elements than were to be read. */
type TooLong = Readonly<{ kind: 'too-long' }>;

/** A body as it was read. */
export type BodyRead = Envelope | Malformed | TooLong;

/** A shorter body takes no longer than the rest of its call. */
const SHORT_BYTES = 1_024;

/**
 * Reads a body of at most `elementsMax` elements in one pass over its bytes. That of a long one is made in slices, each
 * in a turn of the loop that it shares with no other, and of shorter ones a turn makes as many as a slice, so that neither one
 * body nor many of them hold up other calls. Without an end of its slices it is read at once.
 */
export function readEnvelope(
  body: Buffer,
  elementsMax: number,
  sliceBytes = SLICE_BYTES,
): BodyRead | Promise<BodyRead> {
  if (body.length > sliceBytes) return inSlices(body, elementsMax, sliceBytes);
  const isNow = body.length <= SHORT_BYTES || sliceBytes === Infinity || takeOfTurn(body.length);
  if (isNow) return atOnce(body, elementsMax);
  return laterTurn(body.length).then(() => atOnce(body, elementsMax));
}

function atOnce(body: Buffer, elementsMax: number): BodyRead {
  return (isUtf8(body) ? new EnvelopeReading(body, elementsMax).go(Infinity) : undefined) ?? PARSE_ERROR;
}

async function inSlices(body: Buffer, elementsMax: number, sliceBytes: number): Promise<BodyRead> {
  await laterTurn();
  if (!isUtf8(body)) return PARSE_ERROR;
  const reading = new EnvelopeReading(body, elementsMax);
  for (;;) {
    const read = reading.go(sliceBytes);
    if (read !== undefined) return read;
    await laterTurn();
  }
}

/** A body that is being read. */
class EnvelopeReading implements Seer {
  readonly #body: Buffer;
  readonly #elementsMax: number;
  /** The depth around an element: 1 in a batch. */
  readonly #depth: 0 | 1;
  readonly #walk: Walk;
  readonly #elements: Element[] = [];
  readonly #members = new Members();

  constructor(body: Buffer, elementsMax: number) {
    this.#body = body;
    this.#elementsMax = elementsMax;
    const start = afterSpace(body, 0);
    this.#depth = body[start] === OPEN_ARRAY ? 1 : 0;
    this.#walk = new Walk(body, start, this.#depth + 1, this);
  }

  onValue(depth: number, from: number, to: number, nameFrom: number): boolean {
    if (depth === this.#depth) return this.#addElement(from);
    if (nameFrom >= 0 && depth > 0) this.#members.add(this.#body, from, to, nameFrom);
    return false;
  }

  #addElement(from: number): boolean {
    if (this.#elements.length === this.#elementsMax) return true;
    const isObject = this.#body[from] === OPEN_OBJECT;
    this.#elements.push(
      isObject ? elementFrom(this.#body, this.#members) : invalid(NULL_ID, 'not an object'),
    );
    this.#members.clear();
    return false;
  }

  /** Reads so many bytes on, or the text that they end in; `undefined`: there is more. */
  go(bytesMax: number): BodyRead | undefined {
    const body = this.#body;
    const end = this.#walk.go(bytesMax);
    if (end === PAUSED) return undefined;
    if (end === STOPPED) return { kind: 'too-long' };
    if (end === DEEP) return malformed('Invalid request: nested too deeply');
    if (end < 0 || afterSpace(body, end) !== body.length) return PARSE_ERROR;
    if (this.#elements.length === 0) return malformed('Invalid request: empty batch');
    return { kind: this.#depth === 1 ? 'batch' : 'single', elements: this.#elements };
  }
}

/** A body that is JSON, but no request. */
export function malformed(reason: string): Malformed {
  return { kind: 'malformed', code: -32600, reason };
}

const PARSE_ERROR: Malformed = { kind: 'malformed', code: -32700, reason: 'Parse error' };
