import {
  afterName,
  afterSpace,
  afterString,
  afterValue,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isAt,
  isNull,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  textIn,
} from '../json/scan.ts';
import { memberOf } from '../json/slices.ts';
import { Structure } from '../json/structure.ts';
import { SEND_ID_BYTES } from '../request/send-id.ts';
import { EMPTY } from '../http/slab.ts';
import type { WritePiece } from '../http/stream-body.ts';
import { failureOf, type RpcFailure } from './failure.ts';

const RESULT = Buffer.from('{"jsonrpc":"2.0","result":');
/** Where the result of a plain answer stands. */
export const RESULT_AT = RESULT.length;
const ID = Buffer.from(',"id":');
const OBJECT = '{"jsonrpc":';
const NAME = Buffer.from('"id"');
const LF = 0x0a;
const BACKSLASH = '\\';
const ESCAPE = 0x5c;

/** Every byte of an answer up to this length is checked, however it came; of a longer one its ids and its ends. */
export const CHECKED_BYTES_MAX = 65_536;
/** An id that stands first has ended by then. */
const HEAD_BYTES = 512;
/** More than such an end is longer than its id, with white space behind it. */
const TAIL_BYTES = 128 + SEND_ID_BYTES;

/** The index of the id in what begins and ends as `{"jsonrpc":"2.0","result":RESULT,"id":ID}`; -1 for any other. */
export function endIdAt(bytes: Buffer, id: Uint8Array): number {
  // Agave ends its answers with a line feed.
  const end = bytes[bytes.length - 1] === LF ? bytes.length - 2 : bytes.length - 1;
  const idAt = end - id.length;
  if (!isAt(bytes, 0, RESULT) || bytes[end] !== CLOSE_OBJECT) return -1;
  return isAt(bytes, idAt, id) && isAt(bytes, idAt - ID.length, ID) ? idAt : -1;
}

/** The same for a whole answer to the call that was sent under the id; -1 for any other. */
export function plainIdAt(bytes: Buffer, id: Uint8Array): number {
  const idAt = endIdAt(bytes, id);
  if (idAt === -1) return -1;
  if (bytes.length <= CHECKED_BYTES_MAX)
    return afterSpace(bytes, afterValue(bytes, RESULT_AT, CHECKED_BYTES_MAX)) === idAt - ID.length
      ? idAt
      : -1;
  const answer = new FollowedAnswer(id, EMPTY, false);
  answer.push(bytes, ignore);
  return answer.end(ignore) ? idAt : -1;
}

function ignore(): void {
  // only whether it is an answer is wanted
}

/** Where the caller's id goes: in place of the bytes from `from` to `to`, and with its name where an error has none. */
type IdSpan = Readonly<{ from: number; to: number; isNamed?: boolean; error?: RpcFailure | undefined }>;

/** A whole answer to the call that was sent under an id, with the caller's id in place of ours, and its error; `undefined`: it is none. */
export function answerFor(
  bytes: Buffer,
  sentId: Uint8Array,
  callerId: Uint8Array,
  isTrusted: boolean,
): Readonly<{ bytes: Buffer<ArrayBuffer>; error: RpcFailure | undefined }> | undefined {
  if (bytes.length > CHECKED_BYTES_MAX) {
    const pieces: Buffer[] = [];
    const write: WritePiece = (piece) => void pieces.push(piece);
    const answer = new FollowedAnswer(sentId, callerId, isTrusted);
    answer.push(bytes, write);
    return answer.end(write) ? { bytes: Buffer.concat(pieces), error: failureOf(bytes) } : undefined;
  }
  const plainAt = plainIdAt(bytes, sentId);
  const span =
    plainAt === -1
      ? idSpanIn(bytes, sentId)
      : { from: plainAt, to: plainAt + sentId.length, error: undefined };
  return span && { bytes: withId(bytes, span, callerId), error: span.error };
}

/** A plain answer with the caller's id in place of the one at an index, in the same memory where that is long enough. */
export function withCallerId(bytes: Buffer, idAt: number, callerId: Uint8Array): Buffer {
  const behind = idAt + SEND_ID_BYTES;
  if (callerId.length > SEND_ID_BYTES) return withId(bytes, { from: idAt, to: behind }, callerId);
  let at = idAt;
  // Calling the runtime costs more than to copy a few bytes.
  for (let i = 0; i < callerId.length; i++) bytes[at++] = callerId[i] ?? 0;
  for (let i = behind; i < bytes.length; i++) bytes[at++] = bytes[i] ?? 0;
  return bytes.subarray(0, at);
}

function withId(bytes: Buffer, { from, to, isNamed = true }: IdSpan, id: Uint8Array) {
  return Buffer.concat([bytes.subarray(0, from), isNamed ? EMPTY : ID, id, bytes.subarray(to)]);
}

/**
 * Where the id of a short answer stands, whose whole grammar is checked. It is the first member or the last, `jsonrpc` aside,
 * where it is found in a stream too; in an error it may stand anywhere, be null, or be missing: nodes and their fronts write
 * so about a request that they have not read.
 */
function idSpanIn(bytes: Buffer, sentId: Uint8Array): IdSpan | undefined {
  const members: { name: string | undefined; nameAt: number; from: number; to: number }[] = [];
  let i = afterSpace(bytes, 0);
  if (bytes[i] !== OPEN_OBJECT) return undefined;
  do {
    const nameAt = afterSpace(bytes, i + 1);
    const from = afterSpace(bytes, afterName(bytes, nameAt));
    const to = from < 0 ? from : afterValue(bytes, from, CHECKED_BYTES_MAX);
    if (to < 0) return undefined;
    members.push({ name: textIn(bytes.subarray(nameAt, afterString(bytes, nameAt))), nameAt, from, to });
    i = afterSpace(bytes, to);
  } while (bytes[i] === COMMA);
  if (bytes[i] !== CLOSE_OBJECT || afterSpace(bytes, i + 1) !== bytes.length) return undefined;
  const error = failureOf(bytes);
  const ids = members.filter(({ name }) => name === 'id');
  const [id] = ids;
  if (id === undefined) return error && { from: i, to: i, isNamed: false, error };
  if (ids.length > 1 || !members.some(({ name }) => name === 'result' || name === 'error')) return undefined;
  const { from, to } = id;
  const span = { from, to, error };
  if (error !== undefined)
    return isAt(bytes, from, sentId) || isNull(bytes.subarray(from, to)) ? span : undefined;
  const others = members.filter(({ name }) => name !== 'jsonrpc');
  const isFirst = others[0] === id && to < HEAD_BYTES;
  const isLast = others.at(-1) === id && bytes.length - from <= TAIL_BYTES - ID.length;
  const isFound = (isFirst || isLast) && isAt(bytes, id.nameAt, NAME) && isAt(bytes, from, sentId);
  return isFound ? span : undefined;
}

/** Whether an answer has the id of another send: those of all are strings. */
export function isForeign(answer: Uint8Array, sentId: Uint8Array): boolean {
  const id = memberOf(answer, 'id');
  return id?.[0] === QUOTE && !id.equals(sentId);
}

/** Whether bytes begin an object, or nothing yet. */
export function isObjectStart(bytes: Uint8Array): boolean {
  const at = afterSpace(bytes, 0);
  return at === bytes.length || bytes[at] === OPEN_OBJECT;
}

const TELLING = /"(?:result|error)"\s*:/;

/** Whether the start of an answer shows what it is, and whether its id stands first: the id would stand before what tells. */
export function isTelling(start: Buffer): boolean {
  return start.length >= HEAD_BYTES || TELLING.test(start.toString('latin1'));
}

/** Another answer behind this one. Data may hold an object that begins so, but behind a colon, a comma or a bracket. */
const SECOND = /[^:,[]\{"jsonrpc":/;

/** An id where it stands first or last, where no other object's can: the brace before or behind it is the answer's own. */
const FIRST_ID = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("(?:[^"\\]|\\.)*"|[\w.+-]+)\s*,/;
const LAST_ID = /,\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|[\w.+-]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;
/** The name of a member, and the start of an id. */
const NAMED = /"id"\s*:\s*("[A-Z2-7]*)?$/;

/** A depth that no answer reaches: what is followed from its middle on may close more than it opens. */
const MIDDLE_DEPTH = 2 ** 20;

/**
 * Checks an answer as it comes, and passes it on with the caller's id: one object that begins or ends in the id it was sent
 * under, and has no other id. That id is looked for only at both ends: what may be its beginning is held until more has come,
 * and the end of the answer until all is known. To search for names takes a tenth of the time of following the structure,
 * so that is followed only where it must: of an answer that does not begin as nodes write results, unless its end is
 * trusted, and from the first member `"id"` on that stands elsewhere, whose depth is known at the end. The end of a plain
 * result is shown by the id: a quote in a string is escaped, so that no string holds that.
 */
export class FollowedAnswer {
  readonly #sentId: Uint8Array;
  readonly #sentText: string;
  readonly #callerId: Uint8Array;
  readonly #isTrusted: boolean;
  /** The bytes so far, until they show whether the id stands first. */
  #start: Buffer | undefined = EMPTY;
  #hasFirstId = false;
  /** Its structure need not be followed to its end. */
  #hasEnd = false;
  #structure: Structure | undefined;
  #tail = '';
  /** All that has come, as long as it is short. */
  #all: Buffer[] | undefined = [];
  #bytes = 0;
  /** The member of the id and what follows, or what may be its beginning. */
  #held = EMPTY;
  isBroken = false;

  constructor(sentId: Uint8Array, callerId: Uint8Array, isTrusted: boolean) {
    this.#sentId = sentId;
    this.#sentText = Buffer.from(sentId).toString('latin1');
    this.#callerId = callerId;
    this.#isTrusted = isTrusted;
  }

  /** Passes on what may be; gives what `write` gave last. */
  push(piece: Buffer, write: WritePiece): unknown {
    this.#bytes += piece.length;
    if (this.#bytes > CHECKED_BYTES_MAX) this.#all = undefined;
    this.#all?.push(Buffer.from(piece));
    if (this.#start === undefined) {
      this.#follow(piece);
      return this.#pass(piece, write);
    }
    const start = this.#start.length === 0 ? piece : Buffer.concat([this.#start, piece]);
    const isHeld = isObjectStart(start) && !isTelling(start);
    this.#start = isHeld ? Buffer.from(start) : undefined;
    return isHeld ? undefined : this.#begin(start, write);
  }

  #begin(start: Buffer, write: WritePiece): unknown {
    const text = start.toString('latin1', 0, HEAD_BYTES);
    const [first = '', id] = FIRST_ID.exec(text) ?? [];
    this.#hasFirstId = id !== undefined;
    if (!isObjectStart(start) || (id !== undefined && id !== this.#sentText)) this.isBroken = true;
    this.#hasEnd = this.#isTrusted || isAt(start, 0, RESULT);
    // The brace and an id that stands first leave an object open, whose other members follow.
    if (!this.#hasEnd) this.#structure = new Structure(id === undefined ? 0 : 1);
    this.#follow(start.subarray(first.length));
    if (id === undefined) return this.#pass(start, write);
    const from = first.lastIndexOf(id);
    return this.#pass(withId(start, { from, to: from + id.length }, this.#callerId), write);
  }

  #pass(piece: Buffer, write: WritePiece): unknown {
    if (this.isBroken) return undefined;
    const bytes = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    const end = this.#hasFirstId ? bytes.length : Math.max(0, bytes.length - this.#heldBytes());
    this.#held = end === bytes.length ? EMPTY : Buffer.from(bytes.subarray(end));
    return end === 0 ? undefined : write(bytes.subarray(0, end));
  }

  /** The length of the member of the last id in the end of what has come, with what follows it, or of what may be its beginning. */
  #heldBytes(): number {
    const at = this.#tail.lastIndexOf(this.#sentText);
    const [named = '', prefix = ''] = NAMED.exec(at === -1 ? this.#tail : this.#tail.slice(0, at)) ?? [];
    if (at !== -1) return this.#tail.length - at + named.length;
    return this.#sentText.startsWith(prefix) ? named.length : 0;
  }

  #follow(piece: Buffer): void {
    if (this.#hasEnd && this.#hasSecond(piece)) this.isBroken = true;
    const at = this.#structure === undefined ? this.#firstId(piece) : 0;
    if (at !== undefined) {
      this.#structure ??= new Structure(MIDDLE_DEPTH);
      if (at < 0) this.#structure.push(Buffer.from(this.#tail.slice(at)));
      if (!this.#structure.push(piece.subarray(Math.max(0, at)))) this.isBroken = true;
    }
    this.#tail = (this.#tail + piece.toString('latin1', Math.max(0, piece.length - TAIL_BYTES))).slice(
      -TAIL_BYTES,
    );
  }

  /** Whether another answer begins in the piece, or began at the end of the one before. */
  #hasSecond(piece: Buffer): boolean {
    if (SECOND.test(this.#tail.slice(-OBJECT.length) + piece.toString('latin1', 0, OBJECT.length)))
      return true;
    for (let at = 0; (at = piece.indexOf(OBJECT, at + 1, 'latin1')) !== -1;) {
      const before = piece[at - 1];
      if (before !== COLON && before !== COMMA && before !== OPEN_ARRAY) return true;
    }
    return false;
  }

  /** Where the first string `"id"` begins; one that began in the piece before has a negative index. */
  #firstId(piece: Buffer): number | undefined {
    const before = this.#tail.slice(-NAME.length);
    const edge = before + piece.toString('latin1', 0, NAME.length - 1);
    const across = edge.indexOf('"id"', Math.max(0, before.length - NAME.length + 1));
    if (across !== -1 && edge[across - 1] !== BACKSLASH) return across - before.length;
    return nextId(piece, before.endsWith(BACKSLASH) && isAt(piece, 0, NAME) ? 1 : 0);
  }

  /** Passes on the rest, if it was the answer to the call, now that it has ended; gives whether it was. */
  end(write: WritePiece): boolean {
    if (this.#start !== undefined) this.#begin(this.#start, write);
    this.#start = undefined;
    if (this.isBroken || !this.#isAnswer()) return false;
    if (this.#hasFirstId) return true;
    const from = this.#held.indexOf(this.#sentId);
    write(withId(this.#held, { from, to: from + SEND_ID_BYTES }, this.#callerId));
    return true;
  }

  #isAnswer(): boolean {
    const [, last] = LAST_ID.exec(this.#tail) ?? [];
    if (last !== (this.#hasFirstId ? undefined : this.#sentText)) return false;
    if (this.#all !== undefined) return idSpanIn(Buffer.concat(this.#all), this.#sentId) !== undefined;
    if (!this.#hasEnd && this.#structure?.isComplete !== true) return false;
    const { idDepth = Infinity, ids = 0, depth = 0 } = this.#structure ?? {};
    return this.#hasFirstId ? idDepth - depth > 1 : idDepth - depth === 1 && ids === 1;
  }
}

/** Where the first string `"id"` at `from` or later begins; an escaped quote begins none. */
function nextId(piece: Buffer, from: number): number | undefined {
  let at = piece.indexOf(NAME, Math.max(0, from));
  while (at > 0 && piece[at - 1] === ESCAPE) at = piece.indexOf(NAME, at + 1);
  return at === -1 ? undefined : at;
}
