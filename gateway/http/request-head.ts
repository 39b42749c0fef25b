import { trimmed } from '../../shared/keys/carrier.ts';
import { isAt } from '../json/scan.ts';
import {
  digitsIn,
  END_OF_HEAD_BYTES,
  endOfHead,
  endOfValue,
  IS_NAME,
  keepsAlive,
  startOfValue,
  TOKEN,
} from './fields.ts';

/** A request's head as it came. Its fields are looked up in it, in whatever case; to go through all of them costs a `Headers`. */
export class RequestHead {
  readonly method: string;
  /** A path with its query, or a whole URL. */
  readonly target: string;
  /** How long the body is; of a chunked one that shows at its end. */
  readonly framing: number | 'chunked';
  /** HTTP/1.0 has no chunks. */
  readonly isHttp11: boolean;
  readonly #bytes: Buffer;
  readonly #lines: Lines;
  /** A bit for each length that a name has: most fields that are asked for have another one. */
  readonly #lengths: number;

  constructor(line: RequestLine, framing: number | 'chunked', bytes: Buffer, lines: Lines, lengths: number) {
    this.method = line.method;
    this.target = line.target;
    this.isHttp11 = line.isHttp11;
    this.framing = framing;
    this.#bytes = bytes;
    this.#lines = lines;
    this.#lengths = lengths;
  }

  /** Whether the connection may carry another request. */
  get keepsAlive(): boolean {
    return keepsAlive(this.get('connection') ?? '', this.isHttp11);
  }

  /** Whether the caller waits for a 100 before it sends the body. HTTP/1.0 has none (RFC 9110 10.1.1). */
  get expectsContinue(): boolean {
    return this.isHttp11 && EXPECTATION.test(this.get('expect') ?? '');
  }

  /** The field's value, those of several lines joined with ", "; `null`: there is none. */
  get(name: string): string | null {
    if ((this.#lengths & (1 << name.length)) === 0) return null;
    const bytes = this.#bytes;
    const lines = this.#lines;
    let value: string | null = null;
    for (let i = 0; i + 1 < lines.length; i += 2) {
      const from = lines[i] ?? 0;
      const colon = lines[i + 1] ?? 0;
      if (colon - from !== name.length || !isNamed(bytes, from, name)) continue;
      const start = startOfValue(bytes, colon);
      const end = endOfValue(bytes, start, (lines[i + 2] ?? 0) - 2);
      // To make the text of nearly every content type anew costs more than to find it.
      const isJson = end - start === JSON_TYPE.length && isAt(bytes, start, JSON_BYTES);
      const text = isJson ? JSON_TYPE : bytes.toString('latin1', start, end);
      value = value === null ? text : `${value}, ${text}`;
    }
    return value;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  entries() {
    return this.#all().entries();
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  keys() {
    return this.#all().keys();
  }

  values() {
    return this.#all().values();
  }

  forEach(take: (value: string, name: string) => void): void {
    this.#all().forEach((value, name) => take(value, name));
  }

  toJSON() {
    return this.#all().toJSON();
  }

  #all(): Headers {
    const headers = new Headers();
    const [bytes, lines] = [this.#bytes, this.#lines];
    for (let i = 0; i + 1 < lines.length; i += 2) {
      const colon = lines[i + 1] ?? 0;
      const start = startOfValue(bytes, colon);
      const value = bytes.toString('latin1', start, endOfValue(bytes, start, (lines[i + 2] ?? 0) - 2));
      headers.append(bytes.toString('latin1', lines[i], colon), value);
    }
    return headers;
  }
}

/** The index of each line's name and of its colon; at last where the next line would begin. */
type Lines = readonly number[];

type RequestLine = Readonly<{ method: string; target: string; isHttp11: boolean; end: number }>;

/** A refused head gets a status alone: who speaks another protocol would not understand more. */
export type BadHead = Readonly<{ kind: 'bad'; status: 400 | 431 | 501 | 505 }>;

type RequestHeadRead =
  Readonly<{ kind: 'head'; head: RequestHead; end: number }> | Readonly<{ kind: 'more' }> | BadHead;

/** Longer heads, and those of more lines, are refused. */
const HEAD_BYTES_MAX = 16_384;
const LINES_MAX = 200;

const MORE = { kind: 'more' } as const;
const BAD = { kind: 'bad', status: 400 } as const;
const TOO_LARGE = { kind: 'bad', status: 431 } as const;
/** A transfer coding that is not known here, before chunks (RFC 9112 6.1). */
const UNKNOWN_CODING = { kind: 'bad', status: 501 } as const;
const [TAB, LF, CR, SPACE, SLASH, COLON, DELETE] = [0x09, 0x0a, 0x0d, 0x20, 0x2f, 0x3a, 0x7f];
const JSON_TYPE = 'application/json';
const JSON_BYTES = Buffer.from(JSON_TYPE);
const EXPECTATION = /^100-continue$/i;

/**
 * Reads the head that begins with the bytes; `end`: the index behind it. What two readers could understand in two ways is
 * refused: a space before a colon, a folded line, half a line end, two lengths (RFC 9112 2.2, 3, 5, 6.3).
 */
export function readRequestHead(bytes: Buffer): RequestHeadRead {
  // One line end before a request is passed over (RFC 9112 2.2).
  const from = bytes[0] === CR && bytes[1] === LF ? 2 : 0;
  const at = endOfHead(bytes, from, HEAD_BYTES_MAX);
  if (at === 'too-long') return TOO_LARGE;
  const first = bytes[from];
  if (first !== undefined && first !== CR && IS_NAME[first] !== 1) return BAD;
  if (at === 'more') return MORE;
  const line = requestLine(bytes, from);
  if ('kind' in line) return line;
  const lines: number[] = [];
  let lengths = 0;
  let i = line.end;
  while (i < at && bytes[i] === CR && bytes[i + 1] === LF) {
    const name = i + 2;
    let colon = name;
    while (IS_NAME[bytes[colon] ?? 0] === 1) colon++;
    if (bytes[colon] !== COLON || colon === name) return BAD;
    i = endOfText(bytes, colon);
    lines.push(name, colon);
    lengths |= 1 << (colon - name);
  }
  if (i !== at) return BAD;
  if (lines.length > 2 * LINES_MAX) return TOO_LARGE;
  lines.push(at + 2);
  const framing = framingOf(bytes, lines, line.isHttp11);
  if (typeof framing === 'object') return framing;
  const end = at + END_OF_HEAD_BYTES;
  // It must not keep the memory of much that came behind it.
  const own = bytes.length > 2 * HEAD_BYTES_MAX ? Buffer.concat([bytes.subarray(0, end)]) : bytes;
  return { kind: 'head', head: new RequestHead(line, framing, own, lines, lengths), end };
}

/** The index of the first byte from `i` on that no line may have inside: a control character other than a tab (RFC 9110 5.5). */
function endOfText(bytes: Uint8Array, from: number): number {
  let i = from;
  for (let c = bytes[i] ?? 0; (c >= SPACE && c !== DELETE) || c === TAB; c = bytes[i] ?? 0) i++;
  return i;
}

const POST = Buffer.from('POST ');
const HTTP_11 = Buffer.from(' HTTP/1.1\r');
const VERSION = /^ HTTP\/(\d)\.(\d)$/;
/** The bytes of a host's name (RFC 3986 3.2.2) but for the comma, at which some cut a field. */
const NAME = "[A-Za-z0-9._~!$&'()*+;=%-]";
const HOST = `(?:${NAME}+|\\[[0-9A-Fa-f:.]+\\])(?::\\d*)?`;
/** A path or a URL, without a fragment, which one reader would cut off and another would not, or a user (RFC 9112 3.2). */
const TARGET = new RegExp(`^(?:/|https?://${HOST}(?=[/?]|$))[^#]*$`, 'i');
const HOST_FIELD = new RegExp(`^${HOST}$`);
const IS_HOST = new Uint8Array(256);
for (let c = 0; c < 256; c++) if (HOST_FIELD.test(String.fromCharCode(c))) IS_HOST[c] = 1;

/** Nearly every host shows by its bytes alone to be one: a name, with a port or without. */
function isHost(bytes: Buffer, from: number, end: number): boolean {
  let i = from;
  while (i < end && IS_HOST[bytes[i] ?? 0] === 1) i++;
  const colon = i;
  if (i < end && bytes[i] === COLON) for (i++; i < end && isDigit(bytes[i]);) i++;
  return (i === end && colon > from) || HOST_FIELD.test(bytes.toString('latin1', from, end));
}

function isDigit(byte = 0): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function requestLine(bytes: Buffer, from: number): RequestLine | BadHead {
  const isPost = isAt(bytes, from, POST);
  let i = from;
  while (IS_NAME[bytes[i] ?? 0] === 1) i++;
  if (bytes[i] !== SPACE) return BAD;
  const method = isPost ? 'POST' : bytes.toString('latin1', from, i);
  const targetAt = ++i;
  for (let c = bytes[i] ?? 0; c > SPACE && c < DELETE; c = bytes[i] ?? 0) i++;
  const target =
    i === targetAt + 1 && bytes[targetAt] === SLASH ? '/' : bytes.toString('latin1', targetAt, i);
  const isHttp11 = isAt(bytes, i, HTTP_11);
  const end = endOfText(bytes, i);
  if (!isHttp11) {
    const version = bytes.toString('latin1', i, end);
    if (!VERSION.test(version) || version === ' HTTP/1.1') return BAD; // the latter without its line end
    if (version !== ' HTTP/1.0') return { kind: 'bad', status: 505 };
  }
  // What is asked of the whole server is asked of its one endpoint (RFC 9112 3.2.4).
  if (target === '*' && method === 'OPTIONS') return { method, target: '/', isHttp11, end };
  return target === '/' || TARGET.test(target) ? { method, target, isHttp11, end } : BAD;
}

/** A coding with parameters or without, that is not the one in chunks. */
const CODING = new RegExp(`^(?!chunked\\b)${TOKEN}(?:[ \\t]*;.*)?$`, 'i');

/** How the body is framed (RFC 9112 6.3); bad where that is not in one way alone, or no host is named, or several are (RFC 9112 3.2). */
function framingOf(bytes: Buffer, lines: Lines, isHttp11: boolean): number | 'chunked' | BadHead {
  let hosts = 0;
  let length: number | undefined;
  let digits = 0;
  let coding: string | undefined;
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const name = lines[i] ?? 0;
    const colon = lines[i + 1] ?? 0;
    const nameBytes = colon - name;
    if (nameBytes !== 4 && nameBytes !== 14 && nameBytes !== 17) continue;
    const start = startOfValue(bytes, colon);
    const valueBytes = endOfValue(bytes, start, (lines[i + 2] ?? 0) - 2) - start;
    if (nameBytes === 4 && isNamed(bytes, name, 'host')) {
      hosts++;
      if (!isHost(bytes, start, start + valueBytes)) return BAD;
    } else if (nameBytes === 14 && isNamed(bytes, name, 'content-length')) {
      const n = valueBytes > 0 && valueBytes <= 15 ? digitsIn(bytes, start, valueBytes) : NaN;
      // Twice, it is the same digits: `030` after `30` is another length to a reader of octal numbers.
      if (Number.isNaN(n) || (length !== undefined && (length !== n || digits !== valueBytes))) return BAD;
      length = n;
      digits = valueBytes;
    } else if (nameBytes === 17 && isNamed(bytes, name, 'transfer-encoding')) {
      const value = bytes.toString('latin1', start, start + valueBytes);
      coding = coding === undefined ? value : `${coding}, ${value}`;
    }
  }
  if (hosts > 1 || (hosts === 0 && isHttp11)) return BAD;
  if (coding === undefined) return length ?? 0;
  if (!isHttp11 || length !== undefined) return BAD;
  const codings = coding.split(',').map(trimmed);
  const last = codings.pop();
  if (last?.toLowerCase() !== 'chunked' || !codings.every((each) => CODING.test(each))) return BAD;
  return codings.length === 0 ? 'chunked' : UNKNOWN_CODING;
}

/** Whether a name as long as `name` is that, in whatever case of either. */
function isNamed(bytes: Buffer, from: number, name: string): boolean {
  // Letters differ by this bit in their case alone; of a hyphen the other byte is a line end, which no name holds.
  for (let i = 0; i < name.length; i++)
    if (((bytes[from + i] ?? 0) | 0x20) !== (name.charCodeAt(i) | 0x20)) return false;
  return true;
}
