import { TOKEN } from './fields.ts';

/** How a body is framed (RFC 9112 6.3): by its length, in chunks, or by the end of the connection, where a cut looks the same. */
export type Framing = number | 'chunked' | 'until-close';

const [TAB, LF, CR, SPACE, SEMICOLON] = [0x09, 0x0a, 0x0d, 0x20, 0x3b];

/** Chunk-size lines and trailer lines are short; longer ones are an attack or a mistake. */
const LINE_BYTES_MAX = 1_024;
/** All trailer lines together: they are read past, and must not keep a connection that has said all. */
const TRAILER_BYTES_MAX = 4_096;
/** All chunk extensions of a request together. */
const EXTENSION_BYTES_MAX = 16_384;
/** More digits are no length that comes, and no exact number. */
const SIZE_DIGITS_MAX = 12;
/** To copy more, a call costs less than a loop. */
const COPIED_BYTES_MAX = 64;

/** The value of each hexadecimal digit; of other bytes more than that. */
const HEX = new Uint8Array(256).fill(16);
for (const [value, digit] of [...'0123456789abcdef'].entries())
  for (const either of [digit, digit.toUpperCase()]) HEX[either.charCodeAt(0)] = value;

const QUOTED = /"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"/.source;
/** RFC 9112 7.1.1. */
const TRAILER = new RegExp(`^${TOKEN}:[\\t -~\\x80-\\xff]*\\r\\n$`);
const EXTENSIONS = new RegExp(`^(?:[ \\t]*;[ \\t]*${TOKEN}(?:[ \\t]*=[ \\t]*(?:${TOKEN}|${QUOTED}))?)+$`);

/**
 * Where a body's bytes lie next: in its `data`, or (RFC 9112 7.1) in the `size` of a chunk, behind it in `blanks`, an
 * `extension` or the end of the line, in the `gap` behind its data, in the `trailer` lines behind the last chunk. Then the
 * body has ended, with a `surplus` of bytes that belong to no request, or its framing is broken.
 *
 *     size -> (blanks -> extension ->) size-end -> data -> gap -> gap-end -> size
 *                                      size-end -> trailer -> end -> surplus
 */
type DecoderState =
  | 'data'
  | 'size'
  | 'blanks'
  | 'extension'
  | 'size-end'
  | 'gap'
  | 'gap-end'
  | 'trailer'
  | 'end'
  | 'surplus'
  | 'bad';

/** To look for a line's end further away, a call costs less than a loop. */
const NEAR_BYTES = 64;

/** The index of the first line end from `i` on, or of the bytes' end. */
function endOfExtension(bytes: Buffer, i: number): number {
  const near = Math.min(bytes.length, i + NEAR_BYTES);
  for (; i < near; i++) if (bytes[i] === CR || bytes[i] === LF) return i;
  // As unsigned numbers, so that -1 is the highest.
  const first = Math.min(bytes.indexOf(CR, i) >>> 0, bytes.indexOf(LF, i) >>> 0);
  return Math.min(bytes.length, first);
}

/** Takes a body out of its framing, byte by byte between chunks: a megabyte in chunks of one byte must not hold up the loop. */
export class BodyDecoder {
  state: DecoderState;
  /** Bytes behind the body's end, of those that were pushed last. */
  surplusBytes = 0;
  readonly #isChunked: boolean;
  /** Of a request extensions and trailers are checked: who reads it beside us could cut it elsewhere. Those of a response go no further. */
  readonly #isRequest: boolean;
  /** How many bytes of chunk extensions may still come. */
  #extensionBytesLeft: number;
  /** The rest of the chunk, or of a body without chunks. */
  #left: number;
  #sizeDigits = 0;
  /** Bytes of the size's line so far. */
  #lineBytes = 0;
  /** The start of a trailer's line, or of a request's extension. */
  #line = '';
  #trailerBytes = 0;

  constructor(framing: Framing, isRequest = false) {
    this.#isRequest = isRequest;
    this.#extensionBytesLeft = isRequest ? EXTENSION_BYTES_MAX : Infinity;
    this.#isChunked = framing === 'chunked';
    this.#left = typeof framing === 'number' ? framing : this.#isChunked ? 0 : Infinity;
    this.state = this.#isChunked ? 'size' : this.#left === 0 ? 'end' : 'data';
  }

  /** Gives what the bytes hold of the body, moved together in their own memory: a write to the caller costs more. */
  push(bytes: Buffer): Buffer {
    let start = 0;
    let end = 0;
    let i = 0;
    while (i < bytes.length && this.state !== 'bad' && this.state !== 'surplus') {
      if (this.state === 'end') {
        this.state = 'surplus';
        this.surplusBytes = bytes.length - i;
      } else if (this.state === 'data') {
        const length = Math.min(this.#left, bytes.length - i);
        if (end === 0) start = end = i;
        else if (length > COPIED_BYTES_MAX) bytes.copyWithin(end, i, i + length);
        else for (let k = 0; k < length; k++) bytes[end + k] = bytes[i + k] ?? 0;
        end += length;
        i += length;
        this.#left -= length;
        if (this.#left === 0) this.state = this.#isChunked ? 'gap' : 'end';
        if (this.state === 'gap') i = this.#takePlainSize(bytes, i);
      } else i = this.state === 'trailer' ? this.#takeLine(bytes, i) : this.#takeFraming(bytes, i);
    }
    return bytes.subarray(start, end);
  }

  /** Takes all between the data of two chunks when it is there and has no extension, as nearly always; gives the index behind it. */
  #takePlainSize(bytes: Buffer, at: number): number {
    if (bytes[at] !== CR || bytes[at + 1] !== LF) return at;
    let i = at + 2;
    let size = 0;
    for (let digit = HEX[bytes[i] ?? 0] ?? 16; digit < 16; digit = HEX[bytes[++i] ?? 0] ?? 16)
      size = size * 16 + digit;
    const digits = i - at - 2;
    if (digits === 0 || digits > SIZE_DIGITS_MAX || bytes[i] !== CR || bytes[i + 1] !== LF) return at;
    this.#left = size;
    this.state = size === 0 ? 'trailer' : 'data';
    return i + 2;
  }

  /** Takes bytes between the data of two chunks; gives the index behind them. */
  #takeFraming(bytes: Buffer, at: number): number {
    let i = at;
    const c = bytes[i] ?? 0;
    switch (this.state) {
      case 'size':
        for (let digit = HEX[c] ?? 16; digit < 16 && this.#sizeDigits <= SIZE_DIGITS_MAX; i++) {
          this.#left = this.#left * 16 + digit;
          this.#sizeDigits++;
          digit = HEX[bytes[i + 1] ?? 0] ?? 16;
        }
        this.#lineBytes = this.#sizeDigits;
        if (i < bytes.length) this.state = this.#sizeDigits === 0 ? 'bad' : 'blanks';
        if (this.#sizeDigits > SIZE_DIGITS_MAX) this.state = 'bad';
        return i;
      case 'blanks':
        if (c === CR) this.#endSize();
        else if (c === SEMICOLON || c === SPACE || c === TAB) this.#takeExtension(bytes, i, i + 1);
        else this.state = 'bad';
        if (c === SEMICOLON && this.state === 'blanks') this.state = 'extension';
        return i + 1;
      case 'extension':
        i = endOfExtension(bytes, i);
        this.#takeExtension(bytes, at, i);
        if (i === bytes.length || this.state !== 'extension') return i;
        if (bytes[i] === CR) this.#endSize();
        else this.state = 'bad';
        return i + 1;
      case 'size-end':
        this.state = c !== LF ? 'bad' : this.#left === 0 ? 'trailer' : 'data';
        return i + 1;
      case 'gap':
        this.state = c === CR ? 'gap-end' : 'bad';
        return i + 1;
      default:
        this.state = c === LF ? 'size' : 'bad';
        this.#sizeDigits = 0;
        return i + 1;
    }
  }

  #takeExtension(bytes: Buffer, from: number, to: number): void {
    this.#lineBytes += to - from;
    this.#extensionBytesLeft -= to - from;
    if (this.#isRequest) this.#line += bytes.toString('latin1', from, to);
    if (this.#lineBytes + 2 > LINE_BYTES_MAX || this.#extensionBytesLeft < 0) this.state = 'bad';
  }

  #endSize(): void {
    this.state = this.#line === '' || EXTENSIONS.test(this.#line) ? 'size-end' : 'bad';
    this.#line = '';
  }

  /** Takes bytes of a trailer up to the next line feed; gives the index behind them. */
  #takeLine(bytes: Buffer, at: number): number {
    const feed = bytes.indexOf(LF, at);
    const next = feed === -1 ? bytes.length : feed + 1;
    this.#line += bytes.toString('latin1', at, next);
    if (this.#line.length > LINE_BYTES_MAX) this.state = 'bad';
    else if (feed !== -1) {
      const line = this.#line;
      this.#line = '';
      this.#trailerBytes += line.length;
      if (line === '\r\n') this.state = 'end';
      else if (!line.endsWith('\r\n') || this.#trailerBytes > TRAILER_BYTES_MAX) this.state = 'bad';
      else if (this.#isRequest && !TRAILER.test(line)) this.state = 'bad';
    }
    return next;
  }
}
