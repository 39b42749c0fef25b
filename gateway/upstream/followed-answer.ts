import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { isAt, isNull } from '../json/scan.ts';
import { memberOf } from '../json/slices.ts';
import { Structure } from '../json/structure.ts';
import { failureOf } from './failure.ts';

const RESULT = Buffer.from('{"jsonrpc":"2.0","result":');
/** Where the result of a plain answer stands. */
export const RESULT_AT = RESULT.length;
const ID = Buffer.from(',"id":');
const OBJECT = '{"jsonrpc":';
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
  return bytes.indexOf(OBJECT, 1, 'latin1') === -1 ? idAt : -1; // two objects in one body are none
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

/** Whether an answer begins with the id of another call. */
export function isForeignStart(start: string, id: Uint8Array): boolean {
  const [, first] = FIRST_ID.exec(start) ?? [];
  return first !== undefined && !isIdOf(first, id);
}

/** Whether a whole answer has the id of another call; an error about a request that was not read has none. */
export function isForeign(answer: Uint8Array, id: Uint8Array): boolean {
  const found = memberOf(answer, 'id');
  if (found === undefined || isIdOf(found.toString(), id)) return false;
  return !isNull(found) || failureOf(answer) === undefined;
}

/**
 * Follows an answer. A plain one is complete when it ends in its id and no other answer began within it: a quote inside of
 * a string is escaped, so that no string can hold either. Of any other the structure is followed, which takes eight times
 * as long. One whose end is framed is searched no further than its first piece, and may end in anything but another id.
 */
export class FollowedAnswer {
  readonly #id: Uint8Array;
  readonly #isFramed: boolean;
  readonly #isPlain: boolean;
  readonly #structure: Structure | undefined;
  readonly #tailLength: number;
  #tail = '';
  isBroken = false;

  constructor(start: Buffer, id: Uint8Array, isFramed: boolean) {
    this.#id = id;
    this.#isFramed = isFramed;
    this.#isPlain = isAt(start, 0, RESULT) && PLAIN_ID.test(Buffer.from(id).toString('latin1'));
    this.#structure = isFramed || this.#isPlain ? undefined : new Structure();
    this.#tailLength = TAIL_CHARACTERS + idLengthMax(id);
  }

  /** The id that it ends in. */
  get lastId(): string | undefined {
    const [, last] = LAST_ID.exec(this.#tail) ?? [];
    return last === undefined ? undefined : Buffer.from(last, 'latin1').toString();
  }

  get isComplete(): boolean {
    const { lastId } = this;
    if (this.isBroken || (lastId !== undefined && !isIdOf(lastId, this.#id))) return false;
    return this.#isFramed || (this.#structure?.isComplete ?? lastId !== undefined);
  }

  push(piece: Buffer): boolean {
    if (this.#structure?.push(piece) === false) this.isBroken = true;
    if (this.#isPlain && (!this.#isFramed || this.#tail === '')) {
      const edge = this.#tail.slice(-OBJECT.length) + piece.toString('latin1', 0, OBJECT.length);
      if (SECOND.test(edge)) this.isBroken = true;
      for (let at = 0; (at = piece.indexOf(OBJECT, at + 1, 'latin1')) !== -1;)
        if (SECOND.test(piece.toString('latin1', at - 1, at + OBJECT.length))) this.isBroken = true;
    }
    const last = piece.subarray(-this.#tailLength).toString('latin1');
    this.#tail = (this.#tail + last).slice(-this.#tailLength);
    return !this.isBroken;
  }
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
 * Decodes a compressed answer beside the thread, a piece at a time, and follows what it decodes, which must be one whole
 * answer that begins or ends in the id of the call. What cannot be decoded is none. Bytes behind the end of its coding are
 * not looked at, unless they decode to more of it.
 */
export class CodedAnswer {
  readonly #id: Uint8Array;
  readonly #encoding: string;
  readonly #startLength: number;
  #answer: FollowedAnswer | undefined;
  #decoder: Transform | undefined;
  #start = '';
  #decodedBytes = 0;
  #codedEnd = Buffer.alloc(0);
  /** It is no one answer to the call, as far as it is decoded. */
  isBroken = false;
  /** Settles when no more is decoded. The runtime calls back for no piece from then on. */
  #done: PromiseWithResolvers<void> | undefined;

  constructor(id: Uint8Array, encoding: string) {
    this.#id = id;
    this.#encoding = encoding;
    this.#startLength = HEAD_BYTES + idLengthMax(id);
  }

  #begin(piece: Buffer): PromiseWithResolvers<void> {
    this.#decoder = decodersOf(this.#encoding, piece)?.[1]({ chunkSize: DECODED_BYTES })
      .on('error', (error) => this.#fail(error))
      .on('end', () => this.cancel())
      .on('data', (decoded: Buffer) => this.#follow(decoded));
    return Promise.withResolvers();
  }

  #follow(piece: Buffer): void {
    this.#answer ??= new FollowedAnswer(piece, this.#id, false);
    if (!this.#answer.push(piece)) this.isBroken = true;
    this.#decodedBytes += piece.length;
    if (this.#start.length >= this.#startLength) return;
    this.#start += piece.toString('utf8', 0, this.#startLength);
    if (isForeignStart(this.#start, this.#id) || !OBJECT_START.test(this.#start)) this.isBroken = true;
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
    if (this.isBroken || this.#answer?.isComplete !== true) return false;
    return this.#answer.lastId !== undefined || FIRST_ID.test(this.#start);
  }
}
