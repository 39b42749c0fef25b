const [TAB, LF, CR, SPACE] = [0x09, 0x0a, 0x0d, 0x20];

const END_OF_HEAD = Buffer.from('\r\n\r\n');
export const END_OF_HEAD_BYTES = END_OF_HEAD.length;

/** The index of the empty line behind the head that begins at `from`; `more`: it has not come. */
export function endOfHead(bytes: Buffer, from: number, bytesMax: number): number | 'more' | 'too-long' {
  const at = bytes.indexOf(END_OF_HEAD, from);
  // Without its end, the last three bytes may belong to that.
  if ((at === -1 ? bytes.length - 3 : at) - from > bytesMax) return 'too-long';
  return at === -1 ? 'more' : at;
}

/** A name, of a field or of a value's part (RFC 9110 5.6.2). */
export const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const IS_TOKEN = new RegExp(`^${TOKEN}$`);
/** Bytes that may stand in one. */
export const IS_NAME = Uint8Array.from({ length: 256 }, (_, c) =>
  Number(IS_TOKEN.test(String.fromCharCode(c))),
);

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
export function endOfLine(bytes: Uint8Array, i: number): number {
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
export function isName(bytes: Uint8Array, from: number, field: Uint8Array): boolean {
  // Of two bytes of a name that differ by this bit alone, both are letters, or the other one is no name's.
  for (let i = 0; i < field.length; i++) if (((bytes[from + i] ?? 0) | 0x20) !== field[i]) return false;
  return true;
}

const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const KEEP_ALIVE = /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/i;

export function keepsAlive(connection: string, isHttp11: boolean): boolean {
  if (connection === '' || connection === 'keep-alive') return isHttp11 || connection !== '';
  return !CLOSE.test(connection) && (isHttp11 || KEEP_ALIVE.test(connection));
}

/** The ranges of `Accept` or `Accept-Encoding`; a weight of 0 refuses one (RFC 9110 12.4.2). */
export function rangesIn(header: string | null) {
  return (header ?? '')
    .toLowerCase()
    .split(',')
    .map((range) => {
      const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
      return { name, parameters, isRefused: parameters.some((each) => /^q=0(?:\.0*)?$/.test(each)) };
    });
}
