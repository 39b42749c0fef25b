import { isAt } from '../json/scan.ts';
import { endOfLine, IS_NAME } from '../upstream/http-parser.ts';

/** A request's head as it came; its fields are looked up by their lower-case names. */
export class RequestHead {
  readonly method: string;
  /** A path with its query, or a whole URL. */
  readonly target: string;
  /** How long the body is; of a chunked one that shows at its end. */
  readonly framing: number | 'chunked';
  /** HTTP/1.0 has no chunks. */
  readonly isHttp11: boolean;
  readonly #bytes: Buffer;
  /** Of each line the indexes of its name, its colon, and its value's first byte and end. */
  readonly #lines: readonly number[];

  constructor(line: RequestLine, framing: number | 'chunked', bytes: Buffer, lines: readonly number[]) {
    this.method = line.method;
    this.target = line.target;
    this.isHttp11 = line.isHttp11;
    this.framing = framing;
    this.#bytes = bytes;
    this.#lines = lines;
  }

  /** Whether the connection may carry another request. */
  get keepsAlive(): boolean {
    const connection = this.get('connection');
    if (connection === null) return this.isHttp11;
    return !CLOSE.test(connection) && (this.isHttp11 || KEEP_ALIVE.test(connection));
  }

  /** The field's value, those of several lines joined with ", "; `null`: there is none. */
  get(name: string): string | null {
    let value: string | null = null;
    for (let i = 0; i < this.#lines.length; i += 4) {
      const [from = 0, colon = 0] = [this.#lines[i], this.#lines[i + 1]];
      if (colon - from !== name.length || !isNamed(this.#bytes, from, name)) continue;
      const text = this.#bytes.toString('latin1', this.#lines[i + 2], this.#lines[i + 3]);
      value = value === null ? text : `${value}, ${text}`;
    }
    return value;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }
}

type RequestLine = Readonly<{ method: string; target: string; isHttp11: boolean; end: number }>;

/** A refused head gets a status alone: who speaks another protocol would not understand more. */
export type BadHead = Readonly<{ kind: 'bad'; status: 400 | 431 | 505 }>;

type HeadRead =
  Readonly<{ kind: 'head'; head: RequestHead; end: number }> | Readonly<{ kind: 'more' }> | BadHead;

/** Longer heads, and those of more lines, are refused. */
const HEAD_BYTES_MAX = 16_384;
const LINES_MAX = 200;

const MORE = { kind: 'more' } as const;
const BAD = { kind: 'bad', status: 400 } as const;
const TOO_LARGE = { kind: 'bad', status: 431 } as const;
const [CR, LF, TAB, SPACE, SLASH, COLON, DELETE] = [0x0d, 0x0a, 0x09, 0x20, 0x2f, 0x3a, 0x7f];
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const KEEP_ALIVE = /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/i;

/**
 * Reads the head that begins with the bytes; `end`: the index behind it. What two readers could understand in two ways is
 * refused: a space before a colon, a folded line, half a line end, two lengths (RFC 9112 2.2, 3, 5, 6.3).
 */
export function readRequestHead(bytes: Buffer): HeadRead {
  // One line end before a request is passed over (RFC 9112 2.2).
  const from = bytes[0] === CR && bytes[1] === LF ? 2 : 0;
  const at = bytes.indexOf(END_OF_HEAD, from);
  if ((at === -1 ? bytes.length : at) - from > HEAD_BYTES_MAX) return TOO_LARGE;
  const first = bytes[from];
  if (first !== undefined && first !== CR && IS_NAME[first] !== 1) return BAD;
  if (at === -1) return MORE;
  const line = requestLine(bytes, from);
  if ('kind' in line) return line;
  const lines: number[] = [];
  let i = line.end;
  while (i < at && bytes[i] === CR && bytes[i + 1] === LF) {
    const name = i + 2;
    let colon = name;
    while (IS_NAME[bytes[colon] ?? 0] === 1) colon++;
    if (bytes[colon] !== COLON || colon === name) return BAD;
    i = endOfLine(bytes, colon);
    let start = colon + 1;
    let end = i;
    // The space around a value is these two bytes alone (RFC 9110 5.6.3).
    while (start < end && (bytes[start] === SPACE || bytes[start] === TAB)) start++;
    while (start < end && (bytes[end - 1] === SPACE || bytes[end - 1] === TAB)) end--;
    lines.push(name, colon, start, end);
  }
  if (i !== at) return BAD;
  if (lines.length > 4 * LINES_MAX) return TOO_LARGE;
  const framing = framingOf(bytes, lines, line.isHttp11);
  if (framing === undefined) return BAD;
  return { kind: 'head', head: new RequestHead(line, framing, bytes, lines), end: at + END_OF_HEAD.length };
}

const POST = Buffer.from('POST ');
const HTTP_11 = Buffer.from(' HTTP/1.1\r');
const VERSION = /^ HTTP\/(\d)\.(\d)$/;
const TARGET = /^(?:\/|https?:\/\/[^/?#])/i;

function requestLine(bytes: Buffer, from: number): RequestLine | BadHead {
  const isPost = isAt(bytes, from, POST);
  let i = from;
  while (IS_NAME[bytes[i] ?? 0] === 1) i++;
  if (bytes[i] !== SPACE) return BAD;
  const method = isPost ? 'POST' : bytes.toString('latin1', from, i);
  const targetAt = ++i;
  for (let c = bytes[i] ?? 0; c > SPACE && c !== DELETE; c = bytes[i] ?? 0) i++;
  const target =
    i === targetAt + 1 && bytes[targetAt] === SLASH ? '/' : bytes.toString('latin1', targetAt, i);
  const isHttp11 = isAt(bytes, i, HTTP_11);
  const end = endOfLine(bytes, i);
  if (!isHttp11) {
    const version = bytes.toString('latin1', i, end);
    if (!VERSION.test(version)) return BAD;
    if (version !== ' HTTP/1.0') return { kind: 'bad', status: 505 };
  }
  return target === '/' || TARGET.test(target) ? { method, target, isHttp11, end } : BAD;
}

/** How the body is framed (RFC 9112 6.3); `undefined`: not in one way alone, or its host is not named once (RFC 9112 3.2). */
function framingOf(
  bytes: Buffer,
  lines: readonly number[],
  isHttp11: boolean,
): number | 'chunked' | undefined {
  let hosts = 0;
  let length: string | undefined;
  let coding: string | undefined;
  for (let i = 0; i < lines.length; i += 4) {
    const [name = 0, colon = 0] = [lines[i], lines[i + 1]];
    const value = () => bytes.toString('latin1', lines[i + 2], lines[i + 3]);
    if (colon - name === 4 && isNamed(bytes, name, 'host')) hosts++;
    else if (colon - name === 14 && isNamed(bytes, name, 'content-length')) {
      const text = value();
      // Twice, it is the same digits: `030` after `30` is another length to a reader of octal numbers.
      if (!/^\d{1,15}$/.test(text) || (length !== undefined && length !== text)) return undefined;
      length = text;
    } else if (colon - name === 17 && isNamed(bytes, name, 'transfer-encoding')) {
      if (coding !== undefined) return undefined;
      coding = value();
    }
  }
  if (hosts > 1 || (hosts === 0 && isHttp11)) return undefined;
  if (coding === undefined) return Number(length ?? 0);
  return isHttp11 && length === undefined && /^chunked$/i.test(coding) ? 'chunked' : undefined;
}

/** Whether a name as long as `name`, which is in lower case, is that, in whatever case. */
function isNamed(bytes: Buffer, from: number, name: string): boolean {
  // Of two bytes of a name that differ by this bit alone, both are letters, or the other one is no name's.
  for (let i = 0; i < name.length; i++)
    if (((bytes[from + i] ?? 0) | 0x20) !== name.charCodeAt(i)) return false;
  return true;
}
