/**
 * Follows an answer's members around its array of accounts, however its bytes are cut: `result` itself, or
 * `result.value` beside `result.context` (`withContext`).
 */
export type Outline = Readonly<{
  /**
   * Takes the bytes from `from` on. Gives the index after the `[` of the accounts, where it stops, because what
   * follows up to the array's own `]` is not for it; else `bytes.length`, or -1 for what cannot be an answer.
   */
  push(bytes: Buffer, from: number): number;
  /** Whether the `[` of the accounts has come. */
  hasAccounts(): boolean;
  /** Whether the object has ended and nothing but white space followed. */
  isComplete(): boolean;
  /** `result.context.slot` in the answer's own digits, `null` when there is none (yet). */
  slot(): string | null;
}>;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/** No name below is longer, nor is a u64. */
const TEXT_MAX = 20;
/** The members that matter lie this deep at most: `result.context.slot`. */
const DEPTH_MAX = 3;
const WHITESPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

export function createOutline(): Outline {
  /** The name of the member under way in each open object, from depth 1 on; empty in an array. */
  const names = ['', '', '', ''];
  let depth = 0;
  let text = '';
  let inString = false;
  let escaped = false;
  let found = false;
  let ended = false;
  let slot = '';

  function push(bytes: Buffer, from: number): number {
    for (let i = from; i < bytes.length; i++) {
      const byte = bytes[i] ?? 0;
      if (inString) inText(byte);
      else if (depth === 0 && !WHITESPACE.has(byte) && (ended || byte !== OPEN_OBJECT)) return -1;
      else if (byte === OPEN_ARRAY && !found && isAccounts()) {
        found = true;
        open();
        return i + 1;
      } else outside(byte);
    }
    return bytes.length;
  }

  function inText(byte: number): void {
    if (escaped) escaped = false;
    else if (byte === BACKSLASH) escaped = true;
    else if (byte === QUOTE) inString = false;
    if (inString && text.length <= TEXT_MAX) text += String.fromCharCode(byte);
  }

  function outside(byte: number): void {
    if (byte === QUOTE) {
      inString = true;
      text = '';
    } else if (byte === COLON) named(text);
    else if (byte === COMMA) named('');
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) open();
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) ended = --depth === 0;
    else if (byte >= DIGIT_0 && byte <= DIGIT_9 && isSlot()) slot += String.fromCharCode(byte);
  }

  function open(): void {
    depth++;
    named('');
  }

  function named(name: string): void {
    if (depth <= DEPTH_MAX) names[depth] = name;
  }

  function isAccounts(): boolean {
    return names[1] === 'result' && (depth === 1 || (depth === 2 && names[2] === 'value'));
  }

  function isSlot(): boolean {
    const [, first, second, third] = names;
    const there = first === 'result' && second === 'context' && third === 'slot';
    return depth === DEPTH_MAX && there && slot.length < TEXT_MAX;
  }

  return {
    push,
    hasAccounts: () => found,
    isComplete: () => ended,
    slot: () => (slot === '' ? null : slot),
  };
}
