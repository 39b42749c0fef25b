import { BACKSLASH, QUOTE } from './scan.ts';

/** What a byte outside strings is; 0: it may not stand there. */
export const SPACE = 1;
const TEXT = 2;
export const OPEN = 3;
export const CLOSE = 4;
export const STRING = 5;

/** The kind of each byte of JSON outside strings. Letters are those of the three literals and of exponents. */
export const KIND = new Uint8Array(256);
for (const c of ' \t\r\n') KIND[c.charCodeAt(0)] = SPACE;
for (const c of ',:+-.0123456789eEtruefalsn') KIND[c.charCodeAt(0)] = TEXT;
for (const c of '{[') KIND[c.charCodeAt(0)] = OPEN;
for (const c of '}]') KIND[c.charCodeAt(0)] = CLOSE;
KIND[QUOTE] = STRING;

const NEAR_BYTES = 24;

/** Follows the structure of one JSON value through its bytes, however they are cut; it does not parse (docs/decisions/json.md). */
export class Structure {
  /** Objects and arrays that are open. */
  depth: number;
  #inString = false;
  /** The bytes so far ended in a string, after an odd run of backslashes. */
  #escaped = false;
  #hasBegun: boolean;
  /** There was a byte that cannot belong to one JSON value. */
  isBroken = false;

  /** `depth`: so many are open before the first byte. */
  constructor(depth = 0) {
    this.depth = depth;
    this.#hasBegun = depth > 0;
  }

  /** Whether the value has ended and nothing but white space followed. */
  get isComplete(): boolean {
    return this.#hasBegun && this.depth === 0 && !this.isBroken;
  }

  /** Takes the next bytes, those of `bytes` up to `to`; gives false once it is broken. */
  push(bytes: Buffer, from = 0, to = bytes.length): boolean {
    if (from >= to) return !this.isBroken;
    // Locals, because a field is written to memory at every step: this halves the time.
    let { depth } = this;
    let i = this.#inString ? stringEnd(bytes, from, this.#escaped, to) : from;
    while (i >= 0 && i < to) {
      const kind = KIND[bytes[i++] ?? 0] ?? 0;
      if (kind === TEXT && depth > 0) continue;
      if (kind === STRING && depth > 0) {
        // A search for its end costs as much as the bytes of most strings.
        const near = Math.min(to, i + NEAR_BYTES);
        let c = 0;
        let end = i;
        while (end < near && (c = bytes[end] ?? 0) !== QUOTE && c !== BACKSLASH) end++;
        i = end < near && c === QUOTE ? end + 1 : stringEnd(bytes, i, false, to);
      } else if (kind === CLOSE && depth > 0) depth--;
      else if (kind === OPEN && (depth > 0 || !this.#hasBegun)) {
        depth++;
        this.#hasBegun = true;
      } else if (kind !== SPACE) {
        this.isBroken = true;
        break;
      }
    }
    this.depth = depth;
    this.#inString = i < 0;
    this.#escaped = i === UNENDED_ESCAPED;
    return !this.isBroken;
  }
}

/** A string went on past the bytes, and its next character is not escaped, or is. */
const UNENDED = -1;
export const UNENDED_ESCAPED = -2;

/** The index after the string's end; negative: it goes on past the bytes, which end at `to`. `escaped`: the byte at `from` is. */
export function stringEnd(bytes: Buffer, from: number, escaped: boolean, to = bytes.length): number {
  for (let start = from, carried = escaped ? 1 : 0; ;) {
    const found = bytes.indexOf(QUOTE, start);
    const quote = found < to ? found : -1;
    const end = quote === -1 ? to : quote;
    let run = end;
    while (run > start && bytes[run - 1] === BACKSLASH) run--;
    // A run of backslashes that reaches back to the cut goes on from the bytes before it.
    const odd = ((end - run + (run === start ? carried : 0)) & 1) === 1;
    if (quote === -1) return odd ? UNENDED_ESCAPED : UNENDED;
    if (!odd) return quote + 1;
    start = quote + 1;
    carried = 0;
  }
}
