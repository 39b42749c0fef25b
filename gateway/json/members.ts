import { BACKSLASH, COLON, COMMA, OPEN_OBJECT, QUOTE } from './scan.ts';
import { CLOSE, KIND, OPEN, SPACE } from './structure.ts';

/** No name that matters is longer, nor is a u64. */
const TEXT_MAX = 20;
/** The members that matter lie this deep at most: `result.context.slot`. */
const DEPTH_MAX = 3;

/** The names of the members that are open, from the object's own on; in an array the name is empty. */
type Path = readonly string[];

/**
 * Follows the members of one object as far as they tell what it is, however its bytes are cut. It looks at each byte and
 * is for the beginning and the end of an answer; `Structure` is for all of it. `onValue` is called with the first byte of
 * a member's value, and stops `push` behind that byte by giving true; `onScalar` with the text of a number or literal
 * that has ended.
 */
export function createMembers(
  onValue: (path: Path, first: number) => boolean,
  onScalar: (path: Path, text: string) => void,
) {
  const path: string[] = [];
  let depth = 0;
  /** The string or scalar under way; one byte longer than what matters at most. */
  let text = '';
  let inString = false;
  let escaped = false;
  /** The next byte begins a member's value. */
  let isFirst = false;
  let hasEnded = false;

  /** Takes the bytes from `from` on. Gives the index at which `onValue` stopped it, or `bytes.length`; -1 outside one object. */
  function push(bytes: Buffer, from: number): number {
    for (let i = from; i < bytes.length; i++) {
      const byte = bytes[i] ?? 0;
      if (inString) {
        if (byte === QUOTE && !escaped) inString = false;
        else add(byte);
        escaped = byte === BACKSLASH && !escaped;
      } else if (KIND[byte] === SPACE) continue;
      else if (depth === 0 && (hasEnded || byte !== OPEN_OBJECT)) return -1;
      else if (outside(byte)) return i + 1;
    }
    return bytes.length;
  }

  function add(byte: number): void {
    if (text.length <= TEXT_MAX) text += String.fromCharCode(byte);
  }

  /** Gives true to stop behind the byte. */
  function outside(byte: number): boolean {
    const stops = isFirst && depth <= DEPTH_MAX && onValue(path.slice(0, depth), byte);
    if (isFirst || byte === QUOTE) text = '';
    isFirst = byte === COLON;
    const kind = KIND[byte];
    if (byte === QUOTE) inString = true;
    else if (byte === COLON) name(text);
    else if (kind === OPEN) {
      depth++;
      name('');
    } else if (byte === COMMA || kind === CLOSE) {
      if (depth <= DEPTH_MAX) onScalar(path.slice(0, depth), text);
      text = '';
      name('');
      if (kind === CLOSE) hasEnded = --depth === 0;
    } else add(byte);
    return stops;
  }

  function name(of: string): void {
    if (depth <= DEPTH_MAX) path[depth - 1] = of;
  }

  /** Whether the object has ended and nothing but white space followed. */
  const isComplete = () => hasEnded;

  return { push, isComplete };
}
