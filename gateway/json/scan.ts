/** Not JSON (RFC 8259). */
const BAD = -1;
/** JSON, but nested deeper than `DEPTH_MAX`. */
export const DEEP = -2;

/** Levels of arrays and objects in one value. The deepest real request (a filter in a config in params) has 6. */
export const DEPTH_MAX = 64;

export const QUOTE = 0x22;
export const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
export const BACKSLASH = 0x5c;
export const OPEN_ARRAY = 0x5b;
export const CLOSE_ARRAY = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

/** Whether `text` stands in `bytes` at `at`. */
export function isAt(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return true;
}

/** The index of the first byte at or after `i` that is not white space. */
export function afterSpace(bytes: Uint8Array, i: number): number {
  for (;;) {
    const c = bytes[i];
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return i;
    i++;
  }
}

/** The whole number below 10^15 at `i`; `NaN`: none stands there, or the bytes end with it. */
export function wholeNumberAt(bytes: Uint8Array, i: number): number {
  let n = 0;
  let at = i;
  for (let c = bytes[at] ?? 0; c >= ZERO && c <= NINE; c = bytes[++at] ?? 0) n = n * 10 + c - ZERO;
  const end = bytes[at] ?? 0;
  const hasEnd = end === COMMA || end === CLOSE_OBJECT || end === CLOSE_ARRAY || (end > 0 && end <= 0x20);
  return hasEnd && at > i && at - i <= 15 ? n : NaN;
}

/**
 * The index after the JSON value that starts at or after `start`, or `BAD`, or `DEEP`. The whole grammar is
 * checked, so that a slice may be forwarded as it is: nothing a backend reads differently gets through.
 * `depth` is the number of arrays and objects already open around it.
 */
export function afterValue(bytes: Uint8Array, start: number, depth = 0): number {
  const i = afterSpace(bytes, start);
  const c = bytes[i];
  if (c === QUOTE) return afterString(bytes, i);
  if (c !== OPEN_ARRAY && c !== OPEN_OBJECT) return afterScalar(bytes, i);
  return depth >= DEPTH_MAX ? DEEP : afterItems(bytes, i, depth + 1);
}

/** Reads an element, or the value of a member named at `from`, as `afterValue` does; a negative number ends the walk. */
type ReadItem = (bytes: Uint8Array, value: number, depth: number, from: number) => number;

/** The same for the array or object that opens at `open`; `depth` is the number of those open around its items. */
export function afterItems(bytes: Uint8Array, open: number, depth: number, read?: ReadItem): number {
  const isObject = bytes[open] === OPEN_OBJECT;
  const close = isObject ? CLOSE_OBJECT : CLOSE_ARRAY;
  let i = afterSpace(bytes, open + 1);
  if (bytes[i] === close) return i + 1;
  for (;;) {
    const from = i;
    if (isObject && (i = afterName(bytes, i)) === BAD) return BAD;
    i = afterSpace(bytes, i);
    i = read === undefined ? afterValue(bytes, i, depth) : read(bytes, i, depth, from);
    if (i < 0) return i;
    i = afterSpace(bytes, i);
    if (bytes[i] === close) return i + 1;
    if (bytes[i] !== COMMA) return BAD;
    i = afterSpace(bytes, i + 1);
  }
}

/** The index after a member's name and colon, or `BAD`. */
export function afterName(bytes: Uint8Array, i: number): number {
  const colon = bytes[i] === QUOTE ? afterSpace(bytes, afterString(bytes, i)) : BAD;
  return bytes[colon] === COLON ? colon + 1 : BAD;
}

/** The index after the string whose opening quote is at `i`, or `BAD`. */
export function afterString(bytes: Uint8Array, i: number): number {
  for (;;) {
    let c = bytes[++i] ?? 0;
    while (c >= 0x20 && c !== QUOTE && c !== BACKSLASH) c = bytes[++i] ?? 0;
    if (c === QUOTE) return i + 1;
    if (c !== BACKSLASH) return BAD;
    const escape = bytes[++i] ?? 0;
    if (escape === LETTER_U) {
      for (let digits = 0; digits < 4; digits++) if (!HEX.includes(bytes[++i] ?? 0)) return BAD;
    } else if (!ESCAPES.includes(escape)) return BAD;
  }
}

const LETTER_U = 0x75;
const HEX = Buffer.from('0123456789abcdefABCDEF');
const ESCAPES = Buffer.from('"\\/bfnrt');
const LITERALS = ['true', 'false', 'null'].map((text) => Buffer.from(text));

function afterScalar(bytes: Uint8Array, i: number): number {
  for (const literal of LITERALS) if (isAt(bytes, i, literal)) return i + literal.length;
  if (bytes[i] === MINUS) i++;
  if (bytes[i] === ZERO) i++;
  else if ((i = afterDigits(bytes, i)) === BAD) return BAD;
  if (bytes[i] === 0x2e && (i = afterDigits(bytes, i + 1)) === BAD) return BAD;
  const e = bytes[i];
  if (e !== 0x65 && e !== 0x45) return i;
  const sign = bytes[i + 1];
  return afterDigits(bytes, sign === 0x2b || sign === MINUS ? i + 2 : i + 1);
}

function afterDigits(bytes: Uint8Array, from: number): number {
  let i = from;
  for (let c = bytes[i] ?? 0; c >= ZERO && c <= NINE; c = bytes[i] ?? 0) i++;
  return i === from ? BAD : i;
}

/** The text of a JSON string; `undefined` for another value. */
export function textIn(json: Buffer | undefined): string | undefined {
  if (json?.[0] !== QUOTE) return undefined;
  const quoted = json.toString();
  return quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
}

/** Whether a value is there and is `null`; one that is absent is not. */
export function isNull(json: Uint8Array | undefined): boolean {
  return json !== undefined && json.length === 4 && json[0] === 0x6e;
}
