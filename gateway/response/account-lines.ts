import { createOutline } from './outline.ts';
import { afterString, UNENDED_ESCAPED } from './structure.ts';

/**
 * Cuts the accounts of a `getProgramAccounts` answer into lines, however its bytes are cut. An account is passed on as
 * the bytes it is, so every number and every escape keeps its text. Why not stream-json 3.8.0: it keeps numbers, but
 * writes escapes anew, and on 64 MB in 150,000 accounts (64 KiB pieces, Bun 1.4.5) its parser, pick and stringer made
 * 43 MB/s before any line was cut; this makes 330 to 740.
 */
export type AccountLines = Readonly<{
  /** Takes the next bytes; gives those of lines among them, `undefined` from the first that cannot be an answer on. */
  push(bytes: Buffer): Buffer | undefined;
  /** Whether the array of accounts has begun. */
  hasBegun(): boolean;
  /** `{"accounts":N,"slot":S}` and a line feed; `undefined` while the answer is not whole or has no array. */
  last(): Buffer | undefined;
}>;

const QUOTE = 0x22;
const COMMA = 0x2c;
const CLOSE_ARRAY = 0x5d;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

const TEXT = 0;
const STRING = 1;
const OPEN = 2;
const CLOSE = 3;
const BETWEEN = 4;

/** What a byte outside strings is. */
const KIND = new Uint8Array(256);
KIND[QUOTE] = STRING;
for (const c of '{[') KIND[c.charCodeAt(0)] = OPEN;
for (const c of '}]') KIND[c.charCodeAt(0)] = CLOSE;
for (const c of ', \t\r\n') KIND[c.charCodeAt(0)] = BETWEEN;

export function createAccountLines(): AccountLines {
  const outline = createOutline();
  let phase: 'before' | 'within' | 'after' | 'broken' = 'before';
  let accounts = 0;
  /** What is open inside the account under way. */
  let depth = 0;
  let inString = false;
  let escaped = false;
  /** The account under way has bytes. */
  let begun = false;

  function push(given: Buffer): Buffer | undefined {
    const bytes = withoutBreaks(given);
    let out = EMPTY;
    let at = 0;
    if (phase === 'before') {
      at = outline.push(bytes, 0);
      if (outline.hasAccounts()) phase = 'within';
    }
    if (phase === 'within') {
      // A line feed stands in the place of a comma or of the bracket, so the lines are never longer.
      const lines = Buffer.allocUnsafe(bytes.length - at);
      const [next, length] = within(bytes, at, lines);
      at = next;
      out = lines.subarray(0, length);
    }
    if (phase === 'after' && at >= 0) at = outline.push(bytes, at);
    if (at < 0) phase = 'broken';
    return phase === 'broken' ? undefined : out;
  }

  /** Copies the accounts' bytes to `out`; gives the index of the array's `]`, or the end, or -1; and the bytes copied. */
  function within(bytes: Buffer, from: number, out: Buffer): readonly [number, number] {
    // Locals, because a captured variable is written to memory at every step.
    let level = depth;
    let length = 0;
    let run = from;
    let i = inString ? afterString(bytes, from, escaped) : from;
    while (i >= 0 && i < bytes.length) {
      const byte = bytes[i++] ?? 0;
      const kind = KIND[byte];
      if (kind === STRING) {
        begun = true;
        i = afterString(bytes, i, false);
      } else if (kind === OPEN) {
        begun = true;
        level++;
      } else if (kind === CLOSE && level > 0) level--;
      else if (level === 0 && kind === TEXT) begun = true;
      else if (level === 0) {
        length += bytes.copy(out, length, run, i - 1);
        run = i;
        const isEnd = byte === CLOSE_ARRAY;
        if (kind === CLOSE && !isEnd) return [-1, 0];
        if (!isEnd && byte !== COMMA) continue;
        if (begun) out[length++] = LINE_FEED;
        else if (!isEnd || accounts > 0) return [-1, 0];
        if (begun) accounts++;
        begun = false;
        if (!isEnd) continue;
        phase = 'after';
        return [i - 1, length];
      }
    }
    depth = level;
    inString = i < 0;
    escaped = i === UNENDED_ESCAPED;
    length += bytes.copy(out, length, run);
    return [bytes.length, length];
  }

  return {
    push,
    hasBegun: () => outline.hasAccounts(),
    last: () =>
      phase === 'after' && outline.isComplete()
        ? Buffer.from(`{"accounts":${accounts},"slot":${outline.slot()}}\n`)
        : undefined,
  };
}

const EMPTY = Buffer.alloc(0);

/** The bytes with a space for every line break: none may stand inside a line, and nodes write none. */
function withoutBreaks(bytes: Buffer): Buffer {
  if (!bytes.includes(LINE_FEED) && !bytes.includes(CARRIAGE_RETURN)) return bytes;
  return Buffer.from(bytes.map((byte) => (byte === LINE_FEED || byte === CARRIAGE_RETURN ? SPACE : byte)));
}
