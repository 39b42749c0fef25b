import { CLOSE_ARRAY, CLOSE_OBJECT, OPEN_ARRAY, OPEN_OBJECT } from '../request/json-scan.ts';

/**
 * Follows the members of an answer's object as far as they tell what it is, however its bytes are cut. A real result
 * must not wait for what comes behind its first byte; an error or a null may, because another backend may do better.
 */
export type Beginning = Readonly<{
  /**
   * Takes the next bytes. Gives true while the answer is an error, a null, or about to say whether it is one: the name
   * of a member that tells has begun.
   */
  push(bytes: Buffer): boolean;
}>;

/** The members that tell, whatever stands before them. */
const TELLING = ['error', 'result'];
/** No name that tells is longer. */
const NAME_MAX = 6;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LETTER_N = 0x6e;
const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

export function createBeginning(): Beginning {
  let depth = 0;
  let inString = false;
  let escaped = false;
  /** The name under way or read last at depth 1; one byte longer than any that tells at most. */
  let name = '';
  /** Where in a member of the object the next byte lies. */
  let at: 'name' | 'colon' | 'value' | 'after' = 'name';
  let verdict: 'saying' | 'result' | undefined;

  function push(bytes: Buffer): boolean {
    for (const byte of bytes) {
      if (verdict !== undefined) break;
      if (inString) inText(byte);
      else if (!SPACE.has(byte)) outside(byte);
    }
    return verdict === 'saying' || (verdict === undefined && isAboutToTell());
  }

  function isAboutToTell(): boolean {
    if (at === 'name') return inString && name !== '' && TELLING.some((each) => each.startsWith(name));
    return at !== 'after' && TELLING.includes(name);
  }

  function inText(byte: number): void {
    if (escaped) escaped = false;
    else if (byte === BACKSLASH) escaped = true;
    else if (byte === QUOTE) {
      inString = false;
      if (at === 'name') at = 'colon';
      return;
    }
    if (at === 'name' && name.length <= NAME_MAX) name += String.fromCharCode(byte);
  }

  function outside(byte: number): void {
    if (depth === 1 && at === 'value') begins(byte);
    if (byte === QUOTE) {
      inString = true;
      if (at === 'name') name = '';
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth--;
    else if (depth === 1 && byte === COLON) at = 'value';
    else if (depth === 1 && byte === COMMA) at = 'name';
  }

  /** A member's value begins. An error that is null says nothing; what follows it will. */
  function begins(byte: number): void {
    at = 'after';
    const isNull = byte === LETTER_N;
    if (name === 'result') verdict = isNull ? 'saying' : 'result';
    else if (name === 'error' && !isNull) verdict = 'saying';
  }

  return { push };
}
