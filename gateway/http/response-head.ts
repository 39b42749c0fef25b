import { isAt } from '../json/scan.ts';
import type { Framing } from './body-decoder.ts';
import {
  digitsIn,
  END_OF_HEAD_BYTES,
  endOfHead,
  endOfLine,
  endOfValue,
  IS_NAME,
  isName,
  keepsAlive,
  startOfValue,
} from './fields.ts';

/** The used parts of a response's head. A field that came twice is joined with ", "; one that did not come is `undefined`. */
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

type ResponseHeadRead =
  | { readonly kind: 'head'; readonly head: ResponseHead; readonly end: number }
  /** The head under way begins at `from`: the interim ones before it are done with. */
  | { readonly kind: 'more'; readonly from: number }
  | { readonly kind: 'bad'; readonly reason: string };

/** A head longer than this is refused, and so are interim heads that are longer together. */
const HEAD_BYTES_MAX = 32_768;

/** A status that no request of ours allows: whatever follows is no HTTP (RFC 9110 7.8). */
const SWITCHING_PROTOCOLS = 101;

/** Reads a head; interim (1xx) ones are passed over, `passedBytes` of them before. `end`: the body's first byte. */
export function readHead(bytes: Buffer, passedBytes = 0): ResponseHeadRead {
  let from = 0;
  for (;;) {
    const at = endOfHead(bytes, from, HEAD_BYTES_MAX);
    if (at === 'too-long') return bad('its head is too long');
    if (at === 'more') return { kind: 'more', from };
    const read = parsed(bytes, from, at);
    if (read.kind !== 'head' || read.head.status >= 200) return read;
    if (read.head.status === SWITCHING_PROTOCOLS) return bad('it changes the protocol');
    from = read.end;
    if (passedBytes + from > HEAD_BYTES_MAX) return bad('its interim heads do not end');
  }
}

const HTTP_1 = Buffer.from('HTTP/1.');
/** The fields that are read, each by the length of its name, with its last value: nearly always the next one too. */
const FIELDS: { readonly name: Buffer; last: Buffer; text: string }[] = [];
for (const name of ['connection', 'content-type', 'content-length', 'content-encoding', 'transfer-encoding'])
  FIELDS[name.length] = { name: Buffer.from(name), last: Buffer.alloc(0), text: '' };
const [CONNECTION, TYPE, LENGTH, ENCODING, CODING] = [10, 12, 14, 16, 17];
const [CR, LF, SPACE, COLON] = [0x0d, 0x0a, 0x20, 0x3a];

/**
 * Reads the head whose empty line begins at `at`, byte by byte: patterns cost each small call 1 µs more. No space before
 * a colon, no folded line, no lone CR or LF: two readers could differ about them (RFC 9110 5.5, RFC 9112 2.2, 5.1, 5.2).
 */
function parsed(bytes: Buffer, from: number, at: number): Exclude<ResponseHeadRead, { kind: 'more' }> {
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
  return { kind: 'head', head, end: at + END_OF_HEAD_BYTES };
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

function bad(reason: string): Extract<ResponseHeadRead, { kind: 'bad' }> {
  return { kind: 'bad', reason };
}

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  204: 'No Content',
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
};

type Request = Readonly<{ isHttp11: boolean }>;
type Response = Readonly<{
  status: number;
  fields: Readonly<Record<string, string>>;
  cookies?: readonly string[] | undefined;
}>;

/** The head of an answer; `length`: its body's, where that is known. */
export function responseHead(
  { isHttp11 }: Request,
  { status, fields, cookies }: Response,
  length: number | undefined,
  isKept: boolean,
  date: string,
): string {
  let text = `HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n`;
  for (const name in fields) if (name !== 'connection') text += `${name}: ${fields[name]}\r\n`;
  if (cookies !== undefined) for (const cookie of cookies) text += `set-cookie: ${cookie}\r\n`;
  if (!isKept) text += 'connection: close\r\n';
  else if (!isHttp11) text += 'connection: keep-alive\r\n';
  if (length === undefined) text += isHttp11 ? 'transfer-encoding: chunked\r\n' : '';
  else if (status !== 204 && status !== 304) text += `content-length: ${length}\r\n`;
  return `${text}date: ${date}\r\n\r\n`;
}

/** All that a refused head gets: who speaks another protocol would not understand more. */
export function bareHead(status: number): string {
  return `HTTP/1.1 ${status} ${REASONS[status]}\r\nConnection: close\r\n\r\n`;
}
