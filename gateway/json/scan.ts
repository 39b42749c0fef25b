/** Not JSON (RFC 8259). */
export const BAD = -1;
/** JSON, but nested deeper than `DEPTH_MAX`. */
export const DEEP = -2;

/** Levels of arrays and objects in one value. The deepest real request (a filter in a config in params) has 6. */
export const DEPTH_MAX = 64;

export const QUOTE = 0x22;
export const COMMA = 0x2c;
const MINUS = 0x2d;
export const COLON = 0x3a;
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
  if (depth >= DEPTH_MAX) return DEEP;
  return c === OPEN_ARRAY ? afterArray(bytes, i, depth + 1) : afterObject(bytes, i, depth + 1);
}

function afterArray(bytes: Uint8Array, open: number, depth: number): number {
  let i = afterSpace(bytes, open + 1);
  if (bytes[i] === CLOSE_ARRAY) return i + 1;
  for (;;) {
    i = afterValue(bytes, i, depth);
    if (i < 0) return i;
    i = afterSpace(bytes, i);
    if (bytes[i] === CLOSE_ARRAY) return i + 1;
    if (bytes[i++] !== COMMA) return BAD;
  }
}

function afterObject(bytes: Uint8Array, open: number, depth: number): number {
  let i = afterSpace(bytes, open + 1);
  if (bytes[i] === CLOSE_OBJECT) return i + 1;
  for (;;) {
    i = afterName(bytes, i);
    if (i === BAD) return BAD;
    i = afterValue(bytes, i, depth);
    if (i < 0) return i;
    i = afterSpace(bytes, i);
    if (bytes[i] === CLOSE_OBJECT) return i + 1;
    if (bytes[i] !== COMMA) return BAD;
    i = afterSpace(bytes, i + 1);
  }
}

/** The index after a member's name and colon, or `BAD`. */
export function afterName(bytes: Uint8Array, i: number): number {
  if (bytes[i] !== QUOTE) return BAD;
  const end = afterString(bytes, i);
  if (end === BAD) return BAD;
  const colon = afterSpace(bytes, end);
  return bytes[colon] === COLON ? colon + 1 : BAD;
}

/** The index after the string whose opening quote is at `i`, or `BAD`. */
export function afterString(bytes: Uint8Array, i: number): number {
  for (;;) {
    let c = bytes[++i] ?? 0;
    while (c >= 0x20 && c !== QUOTE && c !== BACKSLASH) c = bytes[++i] ?? 0;
    if (c === QUOTE) return i + 1;
    if (c !== BACKSLASH) return BAD;
    const escape = bytes[++i];
    if (escape === 0x75) {
      for (let digits = 0; digits < 4; digits++) if (!isHex(bytes[++i])) return BAD;
    } else if (!isEscape(escape)) return BAD;
  }
}

function afterScalar(bytes: Uint8Array, i: number): number {
  const c = bytes[i];
  if (c === MINUS || isDigit(c)) return afterNumber(bytes, i);
  if (c === 0x74) return spells(bytes, i, 0x74, 0x72, 0x75, 0x65) ? i + 4 : BAD;
  if (c === 0x66) return spells(bytes, i + 1, 0x61, 0x6c, 0x73, 0x65) ? i + 5 : BAD;
  if (c === 0x6e) return spells(bytes, i, 0x6e, 0x75, 0x6c, 0x6c) ? i + 4 : BAD;
  return BAD;
}

function afterNumber(bytes: Uint8Array, i: number): number {
  if (bytes[i] === MINUS) i++;
  if (bytes[i] === 0x30) i++;
  else if ((i = afterDigits(bytes, i)) === BAD) return BAD;
  if (bytes[i] === 0x2e && (i = afterDigits(bytes, i + 1)) === BAD) return BAD;
  const e = bytes[i];
  if (e !== 0x65 && e !== 0x45) return i;
  const sign = bytes[i + 1];
  return afterDigits(bytes, sign === 0x2b || sign === MINUS ? i + 2 : i + 1);
}

function afterDigits(bytes: Uint8Array, i: number): number {
  if (!isDigit(bytes[i])) return BAD;
  while (isDigit(bytes[i])) i++;
  return i;
}

function spells(bytes: Uint8Array, i: number, a: number, b: number, c: number, d: number): boolean {
  return bytes[i] === a && bytes[i + 1] === b && bytes[i + 2] === c && bytes[i + 3] === d;
}

function isDigit(c: number | undefined): boolean {
  return c !== undefined && c >= 0x30 && c <= 0x39;
}

function isHex(c: number | undefined): boolean {
  return c !== undefined && (isDigit(c) || (c >= 0x41 && c <= 0x46) || (c >= 0x61 && c <= 0x66));
}

/** One of `" \ / b f n r t`. */
function isEscape(c: number | undefined): boolean {
  return (
    c === QUOTE ||
    c === BACKSLASH ||
    c === 0x2f ||
    c === 0x62 ||
    c === 0x66 ||
    c === 0x6e ||
    c === 0x72 ||
    c === 0x74
  );
}
