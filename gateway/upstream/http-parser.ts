import { isAt } from '../json/scan.ts';

/** How a body is framed (RFC 9112 6.3): by its length, in chunks, or by the end of the connection, where a cut looks the same. */
export type Framing = number | 'chunked' | 'until-close';

/** What is used of a response's head. A field that came twice is joined with ", "; one that did not come is `undefined`. */
export type ResponseHead = Readonly<{
  status: number;
  /** Whether the Content-Type says JSON. */
  isJson: boolean;
  /** Content-Encoding. */
  encoding: string | undefined;
  framing: Framing;
  /** Whether the connection may carry another request after this body. */
  reusable: boolean;
}>;

type HeadRead =
  | { readonly kind: 'head'; readonly head: ResponseHead; readonly end: number }
  /** The head under way begins at `from`: the interim ones before it are done with. */
  | { readonly kind: 'more'; readonly from: number }
  | { readonly kind: 'bad'; readonly reason: string };

/** A head longer than this is refused, and so are interim heads that are longer together. */
export const HEAD_BYTES_MAX = 32_768;

const END_OF_HEAD = Buffer.from('\r\n\r\n');

/** What no request of ours allows: whatever follows is no HTTP (RFC 9110 7.8). */
const SWITCHING_PROTOCOLS = 101;

/** Reads a head; interim (1xx) ones are passed over, `passedBytes` of them before. `end`: the body's first byte. */
export function readHead(bytes: Buffer, passedBytes = 0): HeadRead {
  let from = 0;
  for (;;) {
    const at = bytes.indexOf(END_OF_HEAD, from);
    // Without its end, the last three bytes may belong to that.
    if ((at === -1 ? bytes.length - 3 : at) - from > HEAD_BYTES_MAX) return bad('its head is too long');
    if (at === -1) return { kind: 'more', from };
    const read = parsed(bytes, from, at);
    if (read.kind !== 'head' || read.head.status >= 200) return read;
    if (read.head.status === SWITCHING_PROTOCOLS) return bad('it changes the protocol');
    from = read.end;
    if (passedBytes + from > HEAD_BYTES_MAX) return bad('its interim heads do not end');
  }
}

/** Bytes that may stand in a field's name (RFC 9110 5.6.2). */
export const IS_NAME = new Uint8Array(256);
for (const c of "!#$%&'*+.^_`|~-0123456789abcdefghijklmnopqrstuvwxyz")
  for (const either of [c, c.toUpperCase()]) IS_NAME[either.charCodeAt(0)] = 1;

const HTTP_1 = Buffer.from('HTTP/1.');
/** The fields that are read, each by the length of its name, with its last value: nearly always the next one too. */
const FIELDS: { readonly name: Buffer; last: Buffer; text: string }[] = [];
for (const name of ['connection', 'content-type', 'content-length', 'content-encoding', 'transfer-encoding'])
  FIELDS[name.length] = { name: Buffer.from(name), last: Buffer.alloc(0), text: '' };
const [CONNECTION, TYPE, LENGTH, ENCODING, CODING] = [10, 12, 14, 16, 17];
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const KEEP_ALIVE = /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/i;
const [CR, LF, TAB, SPACE, COLON, SEMICOLON] = [0x0d, 0x0a, 0x09, 0x20, 0x3a, 0x3b];

/**
 * Reads the head whose empty line begins at `at`, byte by byte: patterns cost each small call 1 µs more. No space before
 * a colon, no folded line, no lone CR or LF: two readers could differ about them (RFC 9110 5.5, RFC 9112 2.2, 5.1, 5.2).
 */
function parsed(bytes: Buffer, from: number, at: number): Exclude<HeadRead, { kind: 'more' }> {
  const minor = digitsIn(bytes, from + 7, 1);
  const status = digitsIn(bytes, from + 9, 3);
  const isVersion = isAt(bytes, from, HTTP_1) && (minor === 0 || minor === 1) && bytes[from + 8] === SPACE;
  const afterStatus = bytes[from + 12];
  if (!isVersion || !(status >= 100) || (afterStatus !== SPACE && afterStatus !== CR))
    return bad('its status line is not HTTP/1');
  /** The values of a field, by the length of its name. */
  const values: (string | undefined)[] = [];
  let length: number | undefined;
  let lengthDigits = 0;
  let i = endOfLine(bytes, from);
  while (i < at && bytes[i] === CR && bytes[i + 1] === LF) {
    const name = i + 2;
    i = name;
    while (IS_NAME[bytes[i] ?? 0] === 1) i++;
    const colon = i;
    if (bytes[colon] !== COLON || colon === name) return bad('a header line is malformed');
    i = endOfLine(bytes, colon);
    const field = FIELDS[colon - name];
    if (field === undefined || !isName(bytes, name, field.name)) continue;
    const start = startOfValue(bytes, colon);
    const end = endOfValue(bytes, start, i);
    if (colon - name === LENGTH) {
      const digits = end > start && end - start <= 15 ? digitsIn(bytes, start, end - start) : NaN;
      // Twice, it is the same digits: `030` after `30` is another length to a reader of octal numbers.
      length = length === undefined || (length === digits && lengthDigits === end - start) ? digits : NaN;
      lengthDigits = end - start;
      continue;
    }
    if (end - start !== field.last.length || !isAt(bytes, start, field.last)) {
      field.last = Buffer.from(bytes.subarray(start, end));
      field.text = field.last.toString('latin1');
    }
    const before = values[colon - name];
    values[colon - name] = before === undefined ? field.text : `${before}, ${field.text}`;
  }
  if (i !== at) return bad('its head has a NUL or half a line end');
  const { [CONNECTION]: connection = '', [TYPE]: type = '', [ENCODING]: encoding, [CODING]: coding } = values;
  const framing = framingOf(status, minor === 1, coding, length);
  if (framing === undefined) return bad('its length is ambiguous');
  const reusable = framing !== 'until-close' && keepsAlive(connection, minor === 1);
  const isJson = type === 'application/json' || /json/i.test(type);
  const head = { status, isJson, encoding, framing, reusable };
  return { kind: 'head', head, end: at + END_OF_HEAD.length };
}

/** A number of so many digits; `NaN`: it is none. */
export function digitsIn(bytes: Uint8Array, from: number, count: number): number {
  let n = 0;
  for (let i = from; i < from + count; i++) {
    const digit = (bytes[i] ?? 0) - 0x30;
    n = digit >= 0 && digit <= 9 ? n * 10 + digit : NaN;
  }
  return n;
}

/** The index of the first byte from `i` on that no line may have inside. */
function endOfLine(bytes: Uint8Array, i: number): number {
  for (let c = bytes[i] ?? 0; c > CR || (c !== 0 && c !== CR && c !== LF); c = bytes[i] ?? 0) i++;
  return i;
}

/** The first byte of a value. The space around one is these two bytes alone (RFC 9110 5.6.3). */
export function startOfValue(bytes: Uint8Array, colon: number): number {
  let i = colon + 1;
  while (bytes[i] === SPACE || bytes[i] === TAB) i++;
  return i;
}

/** The index behind a value, in a line that ends before `i`. */
export function endOfValue(bytes: Uint8Array, start: number, i: number): number {
  while (i > start && (bytes[i - 1] === SPACE || bytes[i - 1] === TAB)) i--;
  return i;
}

/** Whether a name as long as the field's is that, in whatever case. */
function isName(bytes: Uint8Array, from: number, field: Uint8Array): boolean {
  // Of two bytes of a name that differ by this bit alone, both are letters, or the other one is no name's.
  for (let i = 0; i < field.length; i++) if (((bytes[from + i] ?? 0) | 0x20) !== field[i]) return false;
  return true;
}

export function keepsAlive(connection: string, isHttp11: boolean): boolean {
  if (connection === '' || connection === 'keep-alive') return isHttp11 || connection !== '';
  return !CLOSE.test(connection) && (isHttp11 || KEEP_ALIVE.test(connection));
}

function framingOf(status: number, isHttp11: boolean, coding?: string, length?: number): Framing | undefined {
  if (status === 204 || status === 304 || status < 200) return 0;
  if (coding !== undefined) {
    // HTTP/1.0 has no chunks: what stands between has changed the head or the body (RFC 9112 6.1).
    return isHttp11 && length === undefined && /^chunked$/i.test(coding) ? 'chunked' : undefined;
  }
  if (length === undefined) return 'until-close';
  return Number.isNaN(length) ? undefined : length;
}

function bad(reason: string): Extract<HeadRead, { kind: 'bad' }> {
  return { kind: 'bad', reason };
}

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

const TOKEN = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/.source;
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
  /** What is to come of the chunk, or of a body without chunks. */
  #left: number;
  #sizeDigits = 0;
  /** Bytes of the size's line so far. */
  #lineBytes = 0;
  /** What has come of a trailer's line, or of a request's extension. */
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
