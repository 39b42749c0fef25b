import { CLOSE, KIND, OPEN, OTHER, SPACE, STRING, TEXT } from './byte-kinds.ts';
import { BLOCK_BYTES, type Blocks, createBlocks } from './structure-blocks.ts';

/**
 * Follows the structure of one JSON value through its bytes, however they are cut: strings, nesting, its end. It does
 * not parse: what it tells is whether the value has ended, goes on, or can no longer be JSON. About 4 GB/s over the
 * accounts of a scan; on a processor without vectors 1, and less where strings are short (`bench/structure.ts`).
 */
export type Structure = Readonly<{
  /** Takes the next bytes; gives false once there was a byte that cannot belong to one JSON value. */
  push(bytes: Buffer): boolean;
  /** Whether the value has ended and nothing but white space followed. */
  isComplete(): boolean;
}>;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Below this, copying bytes and calling across costs more than it saves. */
const BLOCKS_FROM_BYTES = 512;
/** What is walked byte by byte where no block could be passed over doubles up to this: it saves calls. */
const STEP_BYTES_MAX = 4_096;

/** Follows a value that is an object or an array. `blocks` only passes over what cannot matter; null is slower, not other. */
export function createStructure(blocks: Blocks | null = sharedBlocks()): Structure {
  let depth = 0;
  let inString = false;
  /** The bytes so far ended in a string, after an odd run of backslashes. */
  let escaped = false;
  let broken = false;
  let begun = false;

  function push(bytes: Buffer): boolean {
    byByte(bytes, blocks === null ? 0 : byBlock(blocks, bytes), bytes.length);
    return !broken;
  }

  /** Gives the index from which less than a window is left, too little to be worth one. */
  function byBlock({ load, walk }: Blocks, bytes: Buffer): number {
    let at = 0;
    let step = BLOCK_BYTES;
    while (bytes.length - at >= BLOCKS_FROM_BYTES && !broken) {
      const start = at;
      const end = start + load(bytes, start);
      while (at + BLOCK_BYTES <= end && !broken) {
        const [reached, level, within, carried] = walk(
          at - start,
          end - start,
          depth,
          inString ? -1 : 0,
          escaped ? 1 : 0,
        );
        step = start + reached > at ? BLOCK_BYTES : Math.min(2 * step, STEP_BYTES_MAX);
        at = start + reached;
        depth = level;
        inString = within !== 0;
        escaped = carried !== 0;
        if (at + BLOCK_BYTES <= end) at = byByte(bytes, at, at + step);
      }
    }
    return at;
  }

  /** Goes on from one index at least up to another; a string is followed to its end. Gives the index it came to. */
  function byByte(bytes: Buffer, from: number, to: number): number {
    // Locals, because a captured variable is written to memory at every step: this halves the time.
    const stop = Math.min(to, bytes.length);
    if (from >= stop) return from;
    let level = depth;
    let i = inString ? afterString(bytes, from, escaped) : from;
    while (i >= 0 && i < stop) {
      const kind = KIND[bytes[i++] ?? 0] ?? OTHER;
      if (kind === TEXT && level > 0) continue;
      if (kind === STRING && level > 0) i = afterString(bytes, i, false);
      else if (kind === CLOSE && level > 0) level--;
      else if (kind === OPEN && (level > 0 || !begun)) {
        level++;
        begun = true;
      } else if (kind !== SPACE) {
        broken = true;
        break;
      }
    }
    depth = level;
    inString = i < 0;
    escaped = i === UNENDED_ESCAPED;
    return inString ? bytes.length : i;
  }

  return { push, isComplete: () => begun && depth === 0 && !broken };
}

let shared: Blocks | null | undefined;

/** One window for the process, made when it is first needed: no walk outlives its `push`. */
function sharedBlocks(): Blocks | null {
  if (shared === undefined) shared = createBlocks();
  return shared;
}

/** A string went on past the bytes, and its next character is not escaped, or is. */
const UNENDED = -1;
export const UNENDED_ESCAPED = -2;

/**
 * The index after the string's end, looking from `from`; `escaped` is whether the byte there is. Negative when the
 * string goes on past the bytes.
 */
export function afterString(bytes: Buffer, from: number, escaped: boolean): number {
  for (let start = from, carried = escaped ? 1 : 0; ;) {
    const quote = bytes.indexOf(QUOTE, start);
    const end = quote === -1 ? bytes.length : quote;
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
