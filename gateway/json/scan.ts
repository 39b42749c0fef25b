/** Not JSON (RFC 8259). */
const BAD = -1;
/** JSON, but nested deeper than `DEPTH_MAX`. */
export const DEEP = -2;
/** Ended by who gets the values. */
export const STOPPED = -3;
/** There is more to walk. */
export const PAUSED = -4;

/** Levels of arrays and objects in one value. The deepest real request (a filter in a config in params) has 6. */
export const DEPTH_MAX = 64;

export const QUOTE = 0x22;
export const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
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
 * checked, so that a slice may be forwarded as it is: nothing a backend reads differently gets through. Answers may nest
 * deeper than requests: what they hold is data of the chain, by no fault of the node.
 */
export function afterValue(bytes: Uint8Array, start: number, depthMax = DEPTH_MAX): number {
  return walked(bytes, start, depthMax, Infinity, undefined);
}

/** Who sees the values of a walk. */
export type Seer = Readonly<{
  /** A value has ended: how many arrays and objects are open around it, its bytes, and where its name begins, -1: it has none. True ends the walk. */
  onValue(depth: number, from: number, to: number, nameFrom: number): boolean;
}>;

/** A walk over one JSON value, in one go or in several; its values of at most `depthSeen` are given to a seer as they end. */
export class Walk {
  readonly bytes: Uint8Array;
  readonly depthSeen: number;
  readonly seer: Seer;
  /** How far it has come, and what is open there. */
  at: number;
  depth = 0;
  kinds = 0;
  outer: number[] | undefined;
  /** Where the values seen that are under way begin, and their names, by depth. */
  readonly froms: number[] = [];
  readonly names: number[] = [];

  constructor(bytes: Uint8Array, start: number, depthSeen: number, seer: Seer) {
    this.bytes = bytes;
    this.at = start;
    this.depthSeen = depthSeen;
    this.seer = seer;
  }

  /** Goes on to the end of the value, giving the index after it, `BAD`, `DEEP` or `STOPPED`; `PAUSED` behind so many bytes. */
  go(bytesMax = Infinity): number {
    return walked(this.bytes, this.at, DEPTH_MAX, this.at + bytesMax, this);
  }

  /** Gives a value that has ended. */
  end(depth: number, to: number, isMember: boolean): boolean {
    return this.seer.onValue(depth, this.froms[depth] ?? 0, to, isMember ? (this.names[depth] ?? -1) : -1);
  }
}

/** Walks from `i` to the value's end or to `pause`; `walk` is where it goes on and who sees the values, where there is one. */
function walked(
  bytes: Uint8Array,
  i: number,
  depthMax: number,
  pause: number,
  walk: Walk | undefined,
): number {
  const depthSeen = walk === undefined ? -1 : walk.depthSeen;
  let depth = walk === undefined ? 0 : walk.depth;
  // Of what is open, a bit each, the innermost the lowest of `kinds`: 1 is an object. In words of 32, the outer ones behind it.
  let kinds = walk === undefined ? 0 : walk.kinds;
  let outer = walk?.outer;
  for (;;) {
    if (i >= pause) {
      if (walk !== undefined) [walk.at, walk.depth, walk.kinds, walk.outer] = [i, depth, kinds, outer];
      return PAUSED;
    }
    i = afterSpace(bytes, i);
    const c = bytes[i];
    if (depth <= depthSeen && walk !== undefined) walk.froms[depth] = i;
    let hasEnded = c !== OPEN_ARRAY && c !== OPEN_OBJECT;
    if (hasEnded) {
      i = c === QUOTE ? afterString(bytes, i) : afterScalar(bytes, i);
      if (i === BAD) return BAD;
    } else {
      if (depth === depthMax) return DEEP;
      if (depth > 0 && (depth & 31) === 0) (outer ??= []).push(kinds);
      depth++;
      kinds = (kinds << 1) | (c === OPEN_OBJECT ? 1 : 0);
      i = afterSpace(bytes, i + 1);
    }
    // Ends what ends here, up to what has a next item, or has its first.
    for (;;) {
      const isObject = (kinds & 1) === 1;
      if (hasEnded) {
        if (depth <= depthSeen && walk?.end(depth, i, isObject) === true) return STOPPED;
        if (depth === 0) return i;
        i = afterSpace(bytes, i);
      }
      const isLast = bytes[i] === (isObject ? CLOSE_OBJECT : CLOSE_ARRAY);
      if (!isLast) {
        if (hasEnded && bytes[i] !== COMMA) return BAD;
        if (hasEnded) i = afterSpace(bytes, i + 1);
        if (isObject) {
          if (depth <= depthSeen && walk !== undefined) walk.names[depth] = i;
          if ((i = afterName(bytes, i)) === BAD) return BAD;
        }
        break;
      }
      i++;
      depth--;
      kinds = depth > 0 && (depth & 31) === 0 ? (outer?.pop() ?? 0) : kinds >>> 1;
      hasEnded = true;
    }
  }
}

/** The index after a member's name and colon, or `BAD`. */
export function afterName(bytes: Uint8Array, i: number): number {
  const colon = bytes[i] === QUOTE ? afterSpace(bytes, afterString(bytes, i)) : BAD;
  return bytes[colon] === COLON ? colon + 1 : BAD;
}

/** The index of the value of the first member of the object at `open` that has this quoted name, or `BAD`; what stands before it is walked. */
export function valueAt(bytes: Uint8Array, open: number, name: Uint8Array): number {
  if (bytes[open] !== OPEN_OBJECT) return BAD;
  for (let i = afterSpace(bytes, open + 1); ;) {
    const colon = afterName(bytes, i);
    if (colon === BAD) return BAD;
    const value = afterSpace(bytes, colon);
    if (isAt(bytes, i, name)) return value;
    // A walk is made for what needs one: texts stand before a slot on every call.
    const end = bytes[value] === QUOTE ? afterString(bytes, value) : afterValue(bytes, value);
    i = end < 0 ? end : afterSpace(bytes, end);
    if (bytes[i] !== COMMA) return BAD;
    i = afterSpace(bytes, i + 1);
  }
}

/** The index after the string whose opening quote is at `i`, or `BAD`. */
export function afterString(bytes: Uint8Array, i: number): number {
  for (;;) {
    do i++;
    while (IS_PLAIN[bytes[i] ?? 0] === 1);
    if (bytes[i] === QUOTE) return i + 1;
    if (bytes[i] !== BACKSLASH) return BAD;
    const escape = ESCAPE[bytes[++i] ?? 0];
    if (escape === 0) return BAD;
    if (escape === 1) continue;
    if (HEX[bytes[++i] ?? 0] === 0 || HEX[bytes[++i] ?? 0] === 0) return BAD;
    if (HEX[bytes[++i] ?? 0] === 0 || HEX[bytes[++i] ?? 0] === 0) return BAD;
  }
}

/** 1 for what stands for itself in a string; to compare takes a third longer. */
const IS_PLAIN = new Uint8Array(256).fill(1, 0x20);
IS_PLAIN[QUOTE] = IS_PLAIN[BACKSLASH] = 0;

/** 1 for what may stand behind a backslash, 2 for the letter before four hexadecimal digits. */
const ESCAPE = new Uint8Array(256);
for (const c of '"\\/bfnrt') ESCAPE[c.charCodeAt(0)] = 1;
ESCAPE[0x75] = 2;
const HEX = new Uint8Array(256);
for (const c of '0123456789abcdefABCDEF') HEX[c.charCodeAt(0)] = 1;
const LITERALS = ['true', 'false', 'null'].map((text) => Buffer.from(text));
const LETTERS = 0x61;

/** The index after a number or literal, or `BAD`. */
function afterScalar(bytes: Uint8Array, i: number): number {
  if ((bytes[i] ?? 0) >= LETTERS)
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

/** Whether the JSON string at `from` is a text, in quotes `quoted`, however it is escaped. */
export function isTextAt(bytes: Buffer, from: number, quoted: Uint8Array, text: string): boolean {
  if (isAt(bytes, from, quoted)) return true;
  const to = afterString(bytes, from);
  // No character takes more than six bytes to escape, and none is shorter than itself.
  if (to - from > 2 + 6 * text.length || to - from <= quoted.length) return false;
  return textIn(bytes.subarray(from, to)) === text;
}

/** Whether a value is there and is `null`; one that is absent is not. */
export function isNull(json: Uint8Array | undefined): boolean {
  return json !== undefined && json.length === 4 && json[0] === 0x6e;
}

/** Bytes that are walked in one turn of the event loop, of all texts together: 2 ms for the worst there are. */
export const SLICE_BYTES = 65_536;
let walkedBytes = 0;
let isScheduled = false;
/** Those who wait for a turn that has so many bytes left. */
const waiting: Readonly<{ bytes: number; go(): void }>[] = [];

/** Takes so many bytes of this turn; false: others have them, or wait for them. */
export function takeOfTurn(bytes: number): boolean {
  if (waiting.length > 0 || (walkedBytes > 0 && walkedBytes + bytes > SLICE_BYTES)) return false;
  walkedBytes += bytes;
  schedule();
  return true;
}

/** A later turn that has so many bytes left: what takes long is done in slices, one a turn. */
export function laterTurn(bytes = SLICE_BYTES): Promise<void> {
  schedule();
  return new Promise((go) => void waiting.push({ bytes, go }));
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(nextTurn);
}

function nextTurn(): void {
  isScheduled = false;
  walkedBytes = 0;
  for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
    if (walkedBytes > 0 && walkedBytes + next.bytes > SLICE_BYTES) break;
    walkedBytes += next.bytes;
    waiting.shift();
    next.go();
  }
  if (walkedBytes > 0) schedule();
}
