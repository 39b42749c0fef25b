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

/**
 * Reads a head from the start of `bytes`; interim (1xx) heads are passed over, `passedBytes` of them before. `end` is the
 * index of the body's first byte.
 */
export function readHead(bytes: Buffer, passedBytes = 0): HeadRead {
  let from = 0;
  for (;;) {
    const at = bytes.indexOf(END_OF_HEAD, from);
    // Without its end, the last three bytes may belong to that.
    if ((at === -1 ? bytes.length - 3 : at) - from > HEAD_BYTES_MAX) return bad('its head is too long');
    if (at === -1) return { kind: 'more', from };
    const read = parsed(bytes.toString('latin1', from, at), at + END_OF_HEAD.length);
    if (read.kind !== 'head' || read.head.status >= 200) return read;
    from = read.end;
    if (passedBytes + from > HEAD_BYTES_MAX) return bad('its interim heads do not end');
  }
}

/**
 * No space before a colon, no folded line, no lone CR or LF: two readers could differ about them (RFC 9110 5.5, RFC 9112
 * 2.2, 5.1, 5.2).
 */
const HEAD = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\0\r\n]*)?(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0\r\n]*)*$/;
const STATUS = /^HTTP\/1\.[01] [1-9]\d\d(?: |\r|$)/;
const BREAK = /\0|\r(?!\n)|(?<!\r)\n/;
/** Around a value is the space of these two bytes alone (RFC 9110 5.6.3). */
const FIELD =
  /\n(content-length|content-type|content-encoding|transfer-encoding|connection):[\t ]*((?:[^\r]*[^\r\t ])?)/gi;
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const KEEP_ALIVE = /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/i;

function parsed(text: string, end: number): Exclude<HeadRead, { kind: 'more' }> {
  const [, minor, digits] = HEAD.exec(text) ?? [];
  if (digits === undefined) {
    if (BREAK.test(text)) return bad('its head has a NUL or half a line end');
    return bad(STATUS.test(text) ? 'a header line is malformed' : 'its status line is not HTTP/1');
  }
  const fields = new Map<string, string>();
  for (let field = FIELD.exec(text); field !== null; field = FIELD.exec(text)) {
    const [, given = '', value = ''] = field;
    const name = given.toLowerCase();
    const before = fields.get(name);
    fields.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const status = Number(digits);
  const isHttp11 = minor === '1';
  const framing = framingOf(status, isHttp11, fields.get('transfer-encoding'), fields.get('content-length'));
  if (framing === undefined) return bad('its length is ambiguous');
  const connection = fields.get('connection') ?? '';
  const keeps = !CLOSE.test(connection) && (isHttp11 || KEEP_ALIVE.test(connection));
  const reusable = keeps && framing !== 'until-close';
  const isJson = /json/i.test(fields.get('content-type') ?? '');
  const head = { status, isJson, encoding: fields.get('content-encoding'), framing, reusable };
  return { kind: 'head', head, end };
}

function framingOf(status: number, isHttp11: boolean, coding?: string, length?: string): Framing | undefined {
  if (status === 204 || status === 304 || status < 200) return 0;
  if (coding !== undefined) {
    // HTTP/1.0 has no chunks: what stands between has changed the head or the body (RFC 9112 6.1).
    return isHttp11 && length === undefined && /^chunked$/i.test(coding) ? 'chunked' : undefined;
  }
  if (length === undefined) return 'until-close';
  const [, bytes] = /^(\d{1,15})(?:, \1)*$/.exec(length) ?? [];
  return bytes === undefined ? undefined : Number(bytes);
}

function bad(reason: string): Extract<HeadRead, { kind: 'bad' }> {
  return { kind: 'bad', reason };
}

/** Chunk-size lines and trailer lines are short; longer ones are an attack or a mistake. */
const LINE_BYTES_MAX = 1_024;
/** All trailer lines together: they are read past, and must not keep a connection that has said all. */
const TRAILER_BYTES_MAX = 4_096;

/**
 * Where a body's bytes lie next: in its `data`, or (RFC 9112 7.1) in a chunk's `size` line, in the `gap` behind its data,
 * in the `trailer` lines behind the last chunk. Then the body has ended, with a `surplus` of bytes that belong to no
 * request, or its framing is broken.
 */
type DecoderState = 'data' | 'size' | 'gap' | 'trailer' | 'end' | 'surplus' | 'bad';

/** Takes a body out of its framing. */
export class BodyDecoder {
  state: DecoderState;
  readonly #isChunked: boolean;
  /** What is to come of the chunk, or of a body without chunks. */
  #left: number;
  #line = '';
  #trailerBytes = 0;

  constructor(framing: Framing) {
    this.#isChunked = framing === 'chunked';
    this.#left = typeof framing === 'number' ? framing : Infinity;
    this.state = this.#isChunked ? 'size' : this.#left === 0 ? 'end' : 'data';
  }

  /**
   * Gives what the bytes hold of the body, in one piece that lies in their own memory: chunks are moved together in it,
   * because a write to the caller costs more than the move.
   */
  push(bytes: Buffer): Buffer {
    let start = 0;
    let end = 0;
    let i = 0;
    while (i < bytes.length && this.state !== 'bad' && this.state !== 'surplus') {
      if (this.state === 'end') this.state = 'surplus';
      else if (this.state === 'data') {
        const length = Math.min(this.#left, bytes.length - i);
        if (end === 0) start = end = i;
        else bytes.copyWithin(end, i, i + length);
        end += length;
        i += length;
        this.#left -= length;
        if (this.#left === 0) this.state = this.#isChunked ? 'gap' : 'end';
      } else i = this.#takeLine(bytes, i);
    }
    return bytes.subarray(start, end);
  }

  /** Takes bytes up to the next line feed; gives the index behind them. */
  #takeLine(bytes: Buffer, at: number): number {
    const feed = bytes.indexOf(0x0a, at);
    const next = feed === -1 ? bytes.length : feed + 1;
    this.#line += bytes.toString('latin1', at, next);
    if (this.#line.length > LINE_BYTES_MAX) this.state = 'bad';
    else if (feed !== -1) {
      const line = this.#line;
      this.#line = '';
      this.state = line.endsWith('\r\n') ? this.#afterLine(line.slice(0, -2)) : 'bad';
    }
    return next;
  }

  #afterLine(line: string): DecoderState {
    if (this.state === 'gap') return line === '' ? 'size' : 'bad';
    if (this.state === 'trailer') {
      if (line === '') return 'end';
      this.#trailerBytes += line.length + 2; // the line end counts too
      return this.#trailerBytes > TRAILER_BYTES_MAX ? 'bad' : 'trailer';
    }
    const [, digits] = /^([0-9a-fA-F]{1,12})[\t ]*(?:;.*)?$/.exec(line) ?? [];
    if (digits === undefined) return 'bad';
    this.#left = Number.parseInt(digits, 16);
    return this.#left === 0 ? 'trailer' : 'data';
  }
}
