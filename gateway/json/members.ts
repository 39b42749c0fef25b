import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from './scan.ts';

/** No name that matters is longer, nor is a u64. */
const TEXT_MAX = 20;
/** The members that matter lie this deep at most: `result.context.slot`. */
const DEPTH_MAX = 3;
const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Follows the members of one object as far as they tell what it is, however its bytes are cut. It looks at each byte and
 * is for the beginning and the end of an answer; `Structure` is for all of it.
 */
export type Members = Readonly<{
  /** Takes the bytes from `from` on. Gives the index at which `onValue` stopped it, or `bytes.length`; -1 outside one object. */
  push(bytes: Buffer, from: number): number;
  /** What has come of the name of an own member of the object whose value has not begun. */
  name(): Readonly<{ text: string; isWhole: boolean }>;
  /** Whether the object has ended and nothing but white space followed. */
  isComplete(): boolean;
}>;

/** The names of the members that are open, from the object's own on; in an array the name is empty. */
type Path = readonly string[];

/**
 * `onValue` is called with the first byte of a member's value, and stops `push` behind that byte by giving true;
 * `onScalar` with the text of a number or literal that has ended.
 */
export function createMembers(
  onValue: (path: Path, first: number) => boolean,
  onScalar: (path: Path, text: string) => void = () => undefined,
): Members {
  const path: string[] = [];
  let depth = 0;
  /** The string or scalar under way; one byte longer than what matters at most. */
  let text = '';
  let inString = false;
  let escaped = false;
  /** Where in a member the next byte lies. */
  let at: 'name' | 'colon' | 'value' | 'after' = 'name';
  let hasEnded = false;

  function push(bytes: Buffer, from: number): number {
    for (let i = from; i < bytes.length; i++) {
      const byte = bytes[i] ?? 0;
      if (inString) inText(byte);
      else if (SPACE.has(byte)) continue;
      else if (depth === 0 && (hasEnded || byte !== OPEN_OBJECT)) return -1;
      else if (outside(byte)) return i + 1;
    }
    return bytes.length;
  }

  function inText(byte: number): void {
    if (escaped) escaped = false;
    else if (byte === BACKSLASH) escaped = true;
    else if (byte === QUOTE) {
      inString = false;
      if (at === 'name') at = 'colon';
    }
    if (inString) add(byte);
  }

  function add(byte: number): void {
    if (text.length <= TEXT_MAX) text += String.fromCharCode(byte);
  }

  /** Gives true to stop behind the byte. */
  function outside(byte: number): boolean {
    const isFirst = at === 'value';
    if (isFirst) {
      at = 'after';
      text = '';
    }
    const stops = isFirst && depth <= DEPTH_MAX && onValue(path.slice(0, depth), byte);
    if (byte === QUOTE) {
      inString = true;
      text = '';
    } else if (byte === COLON) named(text, 'value');
    else if (byte === COMMA) ends('name');
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth++;
      named('', byte === OPEN_OBJECT ? 'name' : 'after');
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      ends('after');
      hasEnded = --depth === 0;
    } else add(byte);
    return stops;
  }

  function named(name: string, next: typeof at): void {
    if (depth <= DEPTH_MAX) path[depth - 1] = name;
    at = next;
  }

  function ends(next: typeof at): void {
    if (depth <= DEPTH_MAX) onScalar(path.slice(0, depth), text);
    named('', next);
    text = '';
  }

  return {
    push,
    name: () => ({ text: depth === 1 && at !== 'after' ? text : '', isWhole: at !== 'name' }),
    isComplete: () => hasEnded,
  };
}
