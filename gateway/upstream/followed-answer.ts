import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { isAt, isNull } from '../json/scan.ts';
import { membersOf } from '../json/slices.ts';
import { Structure } from '../json/structure.ts';
import { failureOf } from './failure.ts';

const RESULT = Buffer.from('{"jsonrpc":"2.0","result":');
/** Where the result of a plain answer stands. */
export const RESULT_AT = RESULT.length;
const ID = Buffer.from(',"id":');
const OBJECT = '{"jsonrpc":';
const NAME = '"id"';
/** Where an id that stands first has ended, of any usual length. */
export const HEAD_BYTES = 512;
/** Bytes that are decoded at a time: of fewer, going from thread to thread costs more. */
const DECODED_BYTES = 262_144;
const LF = 0x0a;
const CLOSE_BRACE = 0x7d;

/** The index of the id in a whole answer `{"jsonrpc":"2.0","result":RESULT,"id":ID}` with this id, as nodes write it; -1 for any other. */
export function plainIdAt(bytes: Buffer, id: Uint8Array): number {
  // Agave ends its answers with a line feed.
  const end = bytes[bytes.length - 1] === LF ? bytes.length - 2 : bytes.length - 1;
  const idAt = end - id.length;
  if (!isAt(bytes, 0, RESULT) || bytes[end] !== CLOSE_BRACE) return -1;
  if (!isAt(bytes, idAt, id) || !isAt(bytes, idAt - ID.length, ID)) return -1;
  if (bytes.indexOf(OBJECT, 1, 'latin1') !== -1) return -1; // two objects in one body are none
  if (bytes.indexOf(NAME, RESULT_AT, 'latin1') === idAt - NAME.length - 1) return idAt;
  const answer = new FollowedAnswer(id, false); // an id within its result, or another call's
  return answer.push(bytes) && answer.end() ? idAt : -1;
}

/** What begins an object, or has not begun. */
export const OBJECT_START = /^[ \t\r\n]*(?:\{|$)/;

/** Ids that every node writes as they came: without escapes, and no number that a double cannot hold. */
const PLAIN_ID = /^(?:\d{1,15}|"[\w.:-]{0,64}"|null)$/;
/** More than such an end is longer than its id, with white space behind it. */
const TAIL_CHARACTERS = 128;

/** Another answer behind this one. Data may hold an object that begins so, but behind a colon, a comma or a bracket. */
const SECOND = /[^:,[]\{"jsonrpc":/;

/** An id where it stands first or last, where no other object's can: the brace before or behind it is the answer's own. */
const FIRST_ID = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("(?:[^"\\]|\\.)*"|[\w.+-]+)\s*,/;
const LAST_ID = /,\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|[\w.+-]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

/** The characters of an id of which a node escapes each. */
function idLengthMax(id: Uint8Array): number {
  return 6 * id.length;
}

/** Whether an id in an answer is that of the call: a node may have written it anew. */
function isIdOf(text: string, id: Uint8Array): boolean {
  const own = Buffer.from(id).toString();
  try {
    return text === own || JSON.parse(text) === JSON.parse(own);
  } catch {
    return false;
  }
}

/** Whether an answer, of which `start` has a character for each byte, begins with the id of another call. */
export function isForeignStart(start: string, id: Uint8Array): boolean {
  const [, first] = FIRST_ID.exec(start) ?? [];
  return first !== undefined && !isIdOf(Buffer.from(first, 'latin1').toString(), id);
}

/** Whether a whole answer has no id, or that of another call; an error about a request that was not read has none. */
export function isForeign(answer: Uint8Array, id: Uint8Array): boolean {
  const ids = membersOf(answer)?.flatMap(({ name, value }) => (name === 'id' ? [value] : [])) ?? [];
  if (ids.length > 0 && ids.every((value) => isIdOf(value.toString(), id))) return false;
  return !ids.every(isNull) || failureOf(answer) === undefined;
}

/** A depth that no answer reaches: what is followed from its middle on may close more than it opens. */
const MIDDLE_DEPTH = 2 ** 20;

/**
 * Checks an answer as it comes: one object that begins or ends in the id of the call, and has no other id. To search for
 * names takes a tenth of the time of following the structure, so that is followed only where it must: of an answer whose
 * end nothing else shows, and from the first `"id"` on that stands elsewhere, whose depth is known at the end. The end is
 * shown by its framing, or by the id at the end of a plain answer: a quote in a string is escaped, so that no string holds
 * that.
 */
export class FollowedAnswer {
  readonly #id: Uint8Array;
  readonly #isFramed: boolean;
  readonly #startLength: number;
  /** What has come, until it is as long as an id that stands first can end. */
  #start: Buffer | undefined = Buffer.alloc(0);
  #beginsInId = false;
  /** Its framing or its id will show that it is whole. */
  #hasEnd = false;
  #structure: Structure | undefined;
  /** The least depth of an `"id"`, and how many stand there. */
  #idDepth = Infinity;
  #ids = 0;
  #tail = '';
  isBroken = false;

  constructor(id: Uint8Array, isFramed: boolean) {
    this.#id = id;
    this.#isFramed = isFramed;
    this.#startLength = HEAD_BYTES + idLengthMax(id);
  }

  push(piece: Buffer): boolean {
    if (this.#start === undefined) this.#follow(piece);
    else {
      this.#start = Buffer.concat([this.#start, piece]);
      const text = this.#start.toString('latin1', 0, this.#startLength);
      if (isForeignStart(text, this.#id) || !OBJECT_START.test(text)) this.isBroken = true;
      if (this.#start.length >= this.#startLength) this.#begin(this.#start);
    }
    return !this.isBroken;
  }

  #begin(start: Buffer): void {
    this.#start = undefined;
    const [first = ''] = FIRST_ID.exec(start.toString('latin1', 0, this.#startLength)) ?? [];
    const isPlain = isAt(start, 0, RESULT) && PLAIN_ID.test(Buffer.from(this.#id).toString('latin1'));
    this.#beginsInId = first !== '';
    this.#hasEnd = this.#isFramed || isPlain;
    if (!this.#hasEnd) this.#structure = new Structure();
    this.#structure?.push(start.subarray(0, first.length));
    this.#follow(start.subarray(first.length));
  }

  #follow(piece: Buffer): void {
    if (this.#hasEnd && this.#hasSecond(piece)) this.isBroken = true;
    let followed = 0;
    for (const at of this.#idsIn(piece)) {
      if (this.#structure === undefined) this.#structure = middle(at < 0 ? this.#tail.slice(at) : '');
      else this.#structure.push(piece.subarray(followed, Math.max(0, at)));
      followed = Math.max(0, at);
      const { depth } = this.#structure;
      if (depth < this.#idDepth) [this.#idDepth, this.#ids] = [depth, 0];
      if (depth === this.#idDepth) this.#ids++;
    }
    if (this.#structure?.push(piece.subarray(followed)) === false) this.isBroken = true;
    const length = TAIL_CHARACTERS + idLengthMax(this.#id);
    this.#tail = (this.#tail + piece.subarray(-length).toString('latin1')).slice(-length);
  }

  /** Whether another answer begins in the piece, or began at the end of the one before. */
  #hasSecond(piece: Buffer): boolean {
    if (SECOND.test(this.#tail.slice(-OBJECT.length) + piece.toString('latin1', 0, OBJECT.length)))
      return true;
    for (let at = 0; (at = piece.indexOf(OBJECT, at + 1, 'latin1')) !== -1;)
      if (SECOND.test(piece.toString('latin1', at - 1, at + OBJECT.length))) return true;
    return false;
  }

  /** Where each `"id"` begins that no backslash puts into a string; one that began in the piece before has a negative index. */
  *#idsIn(piece: Buffer): Iterable<number> {
    const before = this.#tail.slice(-NAME.length);
    const edge = before + piece.toString('latin1', 0, NAME.length - 1);
    const across = edge.indexOf(NAME, Math.max(0, before.length - NAME.length + 1));
    if (across !== -1 && edge[across - 1] !== '\\') yield across - before.length;
    for (let at = -1; (at = piece.indexOf(NAME, at + 1, 'latin1')) !== -1;)
      if ((at === 0 ? before.at(-1) : String.fromCharCode(piece[at - 1] ?? 0)) !== '\\') yield at;
  }

  /** Whether it was the answer to the call, now that it has ended. */
  end(): boolean {
    if (this.#start !== undefined) this.#begin(this.#start);
    const [, last] = LAST_ID.exec(this.#tail) ?? [];
    if (this.isBroken || (last !== undefined && !isIdOf(Buffer.from(last, 'latin1').toString(), this.#id)))
      return false;
    const hasEnd =
      this.#isFramed || (this.#hasEnd ? last !== undefined : this.#structure?.isComplete === true);
    if (!hasEnd || (last === undefined && !this.#beginsInId)) return false;
    const idDepth = this.#idDepth - (this.#structure?.depth ?? 0);
    return last === undefined ? idDepth > 1 : idDepth === 1 && this.#ids === 1;
  }
}

/** The structure from somewhere within an object on. */
function middle(text: string): Structure {
  const structure = new Structure(MIDDLE_DEPTH);
  structure.push(Buffer.from(text));
  return structure;
}

/** One for what is whole, and one for what comes in pieces. */
type Decoders = readonly [typeof zlib.zstdDecompressSync, (options: { chunkSize: number }) => Transform];

const DECODERS: Readonly<Record<string, Decoders>> = {
  gzip: [zlib.gunzipSync, zlib.createGunzip],
  deflate: [zlib.inflateSync, zlib.createInflate],
  br: [zlib.brotliDecompressSync, zlib.createBrotliDecompress],
  zstd: [zlib.zstdDecompressSync, zlib.createZstdDecompress],
};
const BARE_DEFLATE: Decoders = [zlib.inflateRawSync, zlib.createInflateRaw];
/** The low half of the first byte of zlib's format (RFC 1950). */
const ZLIB_METHOD = 8;

/** The decoders of bytes that begin so: some servers send deflate without the format around it, and callers read that too. */
function decodersOf(encoding: string, [first = ZLIB_METHOD]: Uint8Array): Decoders | undefined {
  const isBare = encoding === 'deflate' && (first & 0x0f) !== ZLIB_METHOD;
  return isBare ? BARE_DEFLATE : DECODERS[encoding];
}

/** All that is coded in the bytes; `undefined` when it is longer, or cannot be decoded. */
export function decode(bytes: Uint8Array, encoding: string, bytesMax: number): Uint8Array | undefined {
  try {
    return decodersOf(encoding, bytes)?.[0](bytes, { maxOutputLength: bytesMax });
  } catch {
    return undefined;
  }
}

/** CRC and length, which end a gzip member, and a byte behind them. */
const GZIP_END_BYTES = 9;

/**
 * Decodes a compressed answer on another thread, a piece at a time, and checks what it decodes. What cannot be decoded is
 * no answer. Bytes behind the end of its coding are ignored, unless they decode to more of it.
 */
export class CodedAnswer {
  readonly #encoding: string;
  readonly #answer: FollowedAnswer;
  #decoder: Transform | undefined;
  #decodedBytes = 0;
  #codedEnd = Buffer.alloc(0);
  /** It is no one answer to the call, as far as it is decoded. */
  isBroken = false;
  /** Settles when no more is decoded. The runtime calls back for no piece from then on. */
  #done: PromiseWithResolvers<void> | undefined;

  constructor(id: Uint8Array, encoding: string) {
    this.#encoding = encoding;
    this.#answer = new FollowedAnswer(id, false);
  }

  #begin(piece: Buffer): PromiseWithResolvers<void> {
    this.#decoder = decodersOf(this.#encoding, piece)?.[1]({ chunkSize: DECODED_BYTES })
      .on('error', (error) => this.#fail(error))
      .on('end', () => this.cancel())
      .on('data', (decoded: Buffer) => this.#follow(decoded));
    return Promise.withResolvers();
  }

  #follow(piece: Buffer): void {
    if (!this.#answer.push(piece)) this.isBroken = true;
    this.#decodedBytes += piece.length;
  }

  /** Two decoders take bytes behind the end for an error: zstd's any that begin a piece, gzip's a single one. */
  #fail({ code }: NodeJS.ErrnoException): void {
    const isBehindZstd = code === 'ZSTD_error_prefix_unknown';
    const isCut = this.#encoding !== 'gzip' || code !== 'Z_BUF_ERROR' || !this.#endsBeforeLastByte();
    if (!isBehindZstd && isCut) this.isBroken = true;
    this.cancel();
  }

  /** Whether what was decoded is as long as a gzip member that ends before the last byte says. */
  #endsBeforeLastByte(): boolean {
    const end = this.#codedEnd;
    return end.length === GZIP_END_BYTES && end.readUInt32LE(4) === this.#decodedBytes % 2 ** 32;
  }

  /** Settles when the piece, which is kept meanwhile, is decoded, or no more is. */
  push(piece: Buffer): Promise<void> {
    this.#done ??= this.#begin(piece);
    this.#codedEnd = Buffer.concat([this.#codedEnd, piece.subarray(-GZIP_END_BYTES)]).subarray(
      -GZIP_END_BYTES,
    );
    const written = Promise.withResolvers<void>();
    this.#decoder?.write(piece, () => written.resolve());
    return Promise.race([written.promise, this.#done.promise]);
  }

  /** Decodes no more. */
  cancel(): void {
    this.#decoder?.destroy();
    this.#decoder = undefined;
    this.#done?.resolve();
  }

  /** Ends it; gives whether it is the answer to the call. */
  async end(): Promise<boolean> {
    this.#decoder?.end();
    await this.#done?.promise;
    return !this.isBroken && this.#answer.end();
  }
}
