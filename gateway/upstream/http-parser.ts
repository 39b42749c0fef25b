/** How the end of a body is framed (RFC 9112 6.3). */
export type Framing =
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  /** The end of the connection is the end of the body; a cut looks the same. */
  | { readonly kind: 'until-close' };

/** A response's head. Header names are lower-case; a header that came twice is joined with ", ". */
export type ResponseHead = Readonly<{
  status: number;
  headers: ReadonlyMap<string, string>;
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

function parsed(text: string, end: number): Exclude<HeadRead, { kind: 'more' }> {
  const lines = text.split('\r\n');
  // A reader that takes a lone CR or LF for the end of a line would see other fields (RFC 9110 5.5, RFC 9112 2.2).
  if (lines.some((line) => /[\0\r\n]/.test(line))) return bad('its head has a NUL or half a line end');
  const [, minor, digits] = /^HTTP\/1\.([01]) ([1-9]\d{2})(?: |$)/.exec(lines[0] ?? '') ?? [];
  if (digits === undefined) return bad('its status line is not HTTP/1');
  const headers = new Map<string, string>();
  for (const line of lines.slice(1)) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    // No space before the colon and no folded lines: two readers could differ about them (RFC 9112 5.1, 5.2).
    if (colon < 1 || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) return bad('a header line is malformed');
    const value = trimmed(line.slice(colon + 1));
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const status = Number(digits);
  const isHttp11 = minor === '1';
  const framing = framingOf(status, isHttp11, headers);
  if (framing === undefined) return bad('its length is ambiguous');
  const reusable = framing.kind !== 'until-close' && keepsAlive(isHttp11, headers.get('connection') ?? '');
  return { kind: 'head', head: { status, headers, framing, reusable }, end };
}

function framingOf(
  status: number,
  isHttp11: boolean,
  headers: ReadonlyMap<string, string>,
): Framing | undefined {
  const [encoding, length] = [headers.get('transfer-encoding'), headers.get('content-length')];
  if (status === 204 || status === 304 || status < 200) return { kind: 'length', bytes: 0 };
  if (encoding !== undefined) {
    // HTTP/1.0 has no chunks: what stands between has changed the head or the body (RFC 9112 6.1).
    const isChunked = isHttp11 && length === undefined && /^chunked$/i.test(encoding);
    return isChunked ? { kind: 'chunked' } : undefined;
  }
  if (length === undefined) return { kind: 'until-close' };
  const [first, ...others] = length.split(', ');
  if (first === undefined || !/^\d{1,15}$/.test(first) || others.some((other) => other !== first))
    return undefined;
  return { kind: 'length', bytes: Number(first) };
}

function keepsAlive(isHttp11: boolean, connection: string): boolean {
  const options = connection.toLowerCase().split(',').map(trimmed);
  return !options.includes('close') && (isHttp11 || options.includes('keep-alive'));
}

/** A value without the space around it, which is these two bytes alone (RFC 9110 5.6.3): `trim` takes others too. */
function trimmed(value: string): string {
  let [start, end] = [0, value.length];
  while (value[start] === ' ' || value[start] === '\t') start++;
  while (end > start && (value[end - 1] === ' ' || value[end - 1] === '\t')) end--;
  return value.slice(start, end);
}

function bad(reason: string): Extract<HeadRead, { kind: 'bad' }> {
  return { kind: 'bad', reason };
}

/** Where the body of the last small reply lies in the bytes given to `isSmallReply`. */
export const small = { start: 0, end: 0 };

/** A byte that may stand in a header's name (RFC 9110 5.6.2): its lower case; 0 for any other. */
const NAME_BYTE = new Uint8Array(256);
for (const c of "!#$%&'*+.^_`|~-0123456789abcdefghijklmnopqrstuvwxyz")
  NAME_BYTE[c.charCodeAt(0)] = c.charCodeAt(0);
for (let c = 0x41; c <= 0x5a; c++) NAME_BYTE[c] = c + 0x20;

const OK_LINE = Buffer.from('HTTP/1.1 200 ');
const CONTENT_LENGTH = Buffer.from('content-length');
const CONTENT_TYPE = Buffer.from('content-type');
const JSON_TYPE = Buffer.from('application/json');
const CONNECTION = Buffer.from('connection');
const KEEP_ALIVE = Buffer.from('keep-alive');
/** Fields that ask for `readHead`: `content-encoding`, `transfer-encoding`. */
const ENCODING = Buffer.from('-encoding');

/**
 * Whether `bytes` are exactly one HTTP/1.1 reply as nearly all small answers come: 200, JSON, not encoded, with a
 * Content-Length, whole, on a connection that stays open. Sets `small`. Whatever else comes is for `readHead`; this
 * function accepts nothing that it would refuse.
 */
export function isSmallReply(bytes: Uint8Array): boolean {
  if (!startsWith(bytes, 0, OK_LINE)) return false;
  let i = OK_LINE.length;
  let length = -1;
  let isJson = false;
  for (;;) {
    // To the end of the line, which is the status line at first.
    while ((bytes[i] ?? 0) >= SPACE || bytes[i] === TAB) i++;
    if (bytes[i] !== CR || bytes[i + 1] !== LF) return false;
    i += 2;
    if (bytes[i] === CR) break;
    const name = i;
    while (NAME_BYTE[bytes[i] ?? 0] !== 0) i++;
    if (bytes[i] !== COLON || i === name) return false;
    const nameLength = i++ - name;
    while (bytes[i] === SPACE || bytes[i] === TAB) i++;
    if (nameLength === CONTENT_LENGTH.length && startsWith(bytes, name, CONTENT_LENGTH)) {
      if (length !== -1) return false;
      const digits = i;
      length = 0;
      for (let c = bytes[i] ?? 0; c >= 0x30 && c <= 0x39; c = bytes[++i] ?? 0)
        length = length * 10 + c - 0x30;
      if (i === digits || i - digits > 9 || bytes[i] !== CR) return false;
    } else if (nameLength === CONTENT_TYPE.length && startsWith(bytes, name, CONTENT_TYPE)) {
      if (isJson || !startsWith(bytes, i, JSON_TYPE)) return false;
      isJson = true;
    } else if (nameLength === CONNECTION.length && startsWith(bytes, name, CONNECTION)) {
      if (!startsWith(bytes, i, KEEP_ALIVE) || bytes[i + KEEP_ALIVE.length] !== CR) return false;
    } else if (startsWith(bytes, name + nameLength - ENCODING.length, ENCODING)) return false;
  }
  small.start = i + 2;
  small.end = small.start + length;
  const isWhole = bytes[i + 1] === LF && small.end === bytes.length;
  return isWhole && isJson && length > 0 && i - 2 <= HEAD_BYTES_MAX;
}

/** Whether `bytes` have `lower` at `at`, in whatever case. */
function startsWith(bytes: Uint8Array, at: number, lower: Uint8Array): boolean {
  for (let i = 0; i < lower.length; i++) {
    const c = bytes[at + i] ?? 0;
    if (c !== lower[i] && NAME_BYTE[c] !== lower[i]) return false;
  }
  return true;
}

const CR = 0x0d;
const LF = 0x0a;
const TAB = 0x09;
const SPACE = 0x20;
const COLON = 0x3a;

/** What became of some bytes from the connection. */
export type Decoded =
  /** All of them belong to a body that goes on. */
  | 'more'
  /** The body ended with them. */
  | 'end'
  /** The body ended before them: something follows that belongs to no request. */
  | 'surplus'
  /** They break the framing. */
  | 'bad';

/**
 * Takes a body out of its framing. `push` gives what the bytes hold of the body to `onBody`, in one piece that lies in
 * their own memory: chunks are moved together in it, because a write to the caller costs more than the move.
 */
export type BodyDecoder = Readonly<{ push(bytes: Buffer, onBody: (piece: Buffer) => void): Decoded }>;

export function createBodyDecoder(framing: Framing): BodyDecoder {
  switch (framing.kind) {
    case 'length':
      return lengthDecoder(framing.bytes);
    case 'chunked':
      return chunkedDecoder();
    case 'until-close':
      return { push: (bytes, onBody) => (onBody(bytes), 'more') };
  }
}

function lengthDecoder(total: number): BodyDecoder {
  let left = total;
  return {
    push(bytes, onBody) {
      const piece = bytes.length > left ? bytes.subarray(0, left) : bytes;
      left -= piece.length;
      if (piece.length > 0) onBody(piece);
      if (piece.length < bytes.length) return 'surplus';
      return left === 0 ? 'end' : 'more';
    },
  };
}

/** Chunk-size lines and trailer lines are short; longer ones are an attack or a mistake. */
const LINE_BYTES_MAX = 1_024;
/** All trailer lines together: they are read past, and must not keep a connection that has said all. */
const TRAILER_BYTES_MAX = 4_096;

/**
 * The chunked coding (RFC 9112 7.1). States: `size` reads a chunk's size line, `data` its bytes, `gap` the line end
 * after them, `trailer` the lines after the last chunk, up to the empty one.
 */
function chunkedDecoder(): BodyDecoder {
  let state: 'size' | 'data' | 'gap' | 'trailer' = 'size';
  let line = '';
  let left = 0;
  let trailerBytes = 0;
  /** Where in the bytes under way the body's part of them lies. */
  let start = 0;
  let end = 0;

  /** Adds bytes up to the next line feed to `line`; gives the index after it, or -1 when it has not come. */
  function takeLine(bytes: Buffer, at: number): number {
    const feed = bytes.indexOf(0x0a, at);
    line += bytes.toString('latin1', at, feed === -1 ? bytes.length : feed + 1);
    return feed === -1 ? -1 : feed + 1;
  }

  /** Moves what these bytes hold of a chunk to the end of the body's part; gives the index after it. */
  function takeData(bytes: Buffer, at: number): number {
    const length = Math.min(left, bytes.length - at);
    if (end === 0) start = end = at;
    else bytes.copyWithin(end, at, at + length);
    end += length;
    left -= length;
    return at + length;
  }

  function push(bytes: Buffer, onBody: (piece: Buffer) => void): Decoded {
    start = end = 0;
    const decoded = decode(bytes);
    if (end > start) onBody(bytes.subarray(start, end));
    return decoded;
  }

  function decode(bytes: Buffer): Decoded {
    let i = 0;
    while (i < bytes.length) {
      if (state === 'data') {
        i = takeData(bytes, i);
        if (left === 0) state = 'gap';
        continue;
      }
      const next = takeLine(bytes, i);
      if (line.length > LINE_BYTES_MAX) return 'bad';
      if (next === -1) return 'more';
      if (!line.endsWith('\r\n')) return 'bad';
      const text = line.slice(0, -2);
      line = '';
      i = next;
      if (state === 'gap') {
        if (text !== '') return 'bad';
        state = 'size';
      } else if (state === 'trailer') {
        if (text === '') return i === bytes.length ? 'end' : 'surplus';
        trailerBytes += text.length + 2; // the line end counts too
        if (trailerBytes > TRAILER_BYTES_MAX) return 'bad';
      } else {
        const [, digits] = /^([0-9a-fA-F]{1,12})[\t ]*(?:;.*)?$/.exec(text) ?? [];
        if (digits === undefined) return 'bad';
        left = Number.parseInt(digits, 16);
        state = left === 0 ? 'trailer' : 'data';
      }
    }
    return 'more';
  }

  return { push };
}
