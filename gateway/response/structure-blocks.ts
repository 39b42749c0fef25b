import { KIND } from './byte-kinds.ts';
import {
  block,
  branch,
  branchIf,
  type Code,
  get,
  i32,
  i64,
  i8x16,
  loop,
  moduleOf,
  set,
  when,
} from './wasm.ts';

/** Where a walk has come to: a byte of the window, and the state there. */
export type Walked = readonly [at: number, depth: number, inString: number, escaped: number];

/**
 * Walks JSON in blocks of 64 bytes through a window that its bytes are copied to. It passes only over blocks that
 * cannot matter: one with a byte that may not stand where it does, or with the bracket that closes the value, is left
 * to whoever walks byte by byte. About 6 GB/s, and 12 for the copy, where JavaScript makes 1.
 */
export type Blocks = Readonly<{
  /** Copies bytes from `from` on into the window, as many as there are and fit. Gives how many. */
  load(bytes: Buffer, from: number): number;
  /**
   * Walks from byte `at` of the window over the blocks before `end` that can be passed over. `inString` is -1 inside a
   * string, else 0; `escaped` is 1 when the next byte is escaped, else 0.
   */
  walk(at: number, end: number, depth: number, inString: number, escaped: number): Walked;
}>;

/** The module's one page of memory: small enough to stay in a core's own cache. */
const WINDOW_BYTES = 65_536;
export const BLOCK_BYTES = 64;
const LANE_BYTES = 16;

/** A window of its own, or null on a processor without 128-bit vectors for WebAssembly. */
export function createBlocks(): Blocks | null {
  const bytes = moduleOf({
    params: ['i32', 'i32', 'i32', 'i32', 'i32'],
    results: ['i32', 'i32', 'i32', 'i32'],
    locals: [...Array<'i64'>(10).fill('i64'), ...LANES.map(() => 'v128' as const)],
    body: [
      ...passOver(),
      ...[get(AT), get(DEPTH), ...[WITHIN, FIRST_ESCAPED].map((each) => i32.from64(get(each)))].flat(),
    ],
  });
  if (!WebAssembly.validate(bytes)) return null;
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes));
  // Exports have no types of their own; `moduleOf` made these two just now.
  const { memory, kernel } = exports as unknown as { memory: WebAssembly.Memory; kernel: Blocks['walk'] };
  const window = new Uint8Array(memory.buffer);
  return {
    load(given, from) {
      const part = given.subarray(from, from + WINDOW_BYTES);
      window.set(part);
      return part.length;
    },
    walk: kernel,
  };
}

/** The parameters; then numbers of 64 bits, most of them a bit for each byte of a block; then a block's vectors. */
const [AT, END, DEPTH, IN_STRING, IS_ESCAPED] = [0, 1, 2, 3, 4];
const [WITHIN, FIRST_ESCAPED, NEXT_ESCAPED, BACKSLASHES, ESCAPED, OUTSIDE, OPENED, CLOSED, LEFT, COUNT] = [
  5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
];
const LANES = [15, 16, 17, 18];

/** The bits 1, 3, 5 … 31. */
const ODD_BITS = 0xaaaaaaaa | 0;
const NONE = i64.of(0);
const ONE = i64.of(1);
const ALL = i64.of(-1);
const not = (bits: Code) => i64.xor(bits, ALL);

/** Moves `AT` block by block. `WITHIN` (all bits or none) and `FIRST_ESCAPED` (1 or 0) are the state at its first byte. */
function passOver(): Code {
  const backslash = LANES.map((lane) => i8x16.equal(get(lane), byteOf('\\'))).reduce(i8x16.or);
  const nextBlock = [
    set(FIRST_ESCAPED, get(NEXT_ESCAPED)),
    set(AT, i32.add(get(AT), i32.of(BLOCK_BYTES))),
  ].flat();
  const leave = (condition: Code) => branchIf(1, condition);
  return [
    ...set(WITHIN, i64.fromSigned32(get(IN_STRING))),
    ...set(FIRST_ESCAPED, i64.from32(get(IS_ESCAPED))),
    ...block(
      loop(
        leave(i32.exceeds(i32.add(get(AT), i32.of(BLOCK_BYTES)), get(END))),
        ...LANES.map((lane, i) => set(lane, i8x16.load(get(AT), LANE_BYTES * i))),
        set(ESCAPED, NONE),
        set(NEXT_ESCAPED, NONE),
        when(i32.or(i8x16.isAny(backslash), i64.differ(get(FIRST_ESCAPED), NONE)), findEscaped()),
        // First a bit for each quote. Without any, a block that begins inside a string is all string.
        set(
          OUTSIDE,
          i64.and(
            bitsOf((lane) => i8x16.equal(lane, byteOf('"'))),
            not(get(ESCAPED)),
          ),
        ),
        when(i64.isZero(i64.or(get(OUTSIDE), not(get(WITHIN)))), nextBlock, branch(1)),
        // Then each bit becomes the parity of the quotes up to it: 1 from an opening quote up to its closing one.
        ...[1, 2, 4, 8, 16, 32].map((by) =>
          set(OUTSIDE, i64.xor(get(OUTSIDE), i64.shiftLeft(get(OUTSIDE), i64.of(by)))),
        ),
        set(OUTSIDE, not(i64.xor(get(OUTSIDE), get(WITHIN)))),
        leave(i64.differ(i64.and(get(OUTSIDE), bitsOf(isOther)), NONE)),
        set(CLOSED, i64.and(get(OUTSIDE), bitsOf(isEither('}', ']')))),
        set(OPENED, i64.and(get(OUTSIDE), bitsOf(isEither('{', '[')))),
        when(i32.atMost(get(DEPTH), countOf(get(CLOSED))), leaveAtTheEnd(3)),
        set(DEPTH, i32.sub(i32.add(get(DEPTH), countOf(get(OPENED))), countOf(get(CLOSED)))),
        set(WITHIN, i64.shiftRight(not(get(OUTSIDE)), i64.of(63))),
        nextBlock,
        branch(0),
      ),
    ),
  ];
}

/**
 * Sets `ESCAPED` to the bytes that are escaped and `NEXT_ESCAPED` to whether the next block's first one is. In a run of
 * backslashes every other one escapes: the subtraction carries through runs, and the odd bits tell where they began.
 * The way is that of simdjson's `json_escape_scanner.h`.
 */
function findEscaped(): Code {
  const odd = i64.or(i64.shiftLeft(i64.of(ODD_BITS), i64.of(32)), i64.from32(i32.of(ODD_BITS)));
  const potential = i64.and(get(BACKSLASHES), not(get(FIRST_ESCAPED)));
  const runs = i64.xor(i64.sub(i64.or(i64.shiftLeft(potential, ONE), odd), potential), odd);
  return [
    set(
      BACKSLASHES,
      bitsOf((lane) => i8x16.equal(lane, byteOf('\\'))),
    ),
    set(LEFT, runs),
    set(ESCAPED, i64.xor(get(LEFT), i64.or(get(BACKSLASHES), get(FIRST_ESCAPED)))),
    set(NEXT_ESCAPED, i64.shiftRightUnsigned(i64.and(get(LEFT), get(BACKSLASHES)), i64.of(63))),
  ].flat();
}

/** Branches `depth` levels out when a bracket of the block closes the value: looks at one closing bracket after another. */
function leaveAtTheEnd(depth: number): Code {
  const before = i64.sub(i64.and(get(LEFT), i64.sub(NONE, get(LEFT))), ONE);
  const openBefore = i32.add(get(DEPTH), countOf(i64.and(get(OPENED), before)));
  return [
    ...branchIf(depth - 1, i32.atMost(get(DEPTH), i32.of(0))), // it has not begun, or has ended
    ...set(LEFT, get(CLOSED)),
    ...set(COUNT, NONE),
    ...loop(
      set(COUNT, i64.sub(get(COUNT), ALL)),
      branchIf(depth, i32.atMost(openBefore, i32.from64(get(COUNT)))),
      set(LEFT, i64.and(get(LEFT), i64.sub(get(LEFT), ONE))),
      branchIf(0, i64.differ(get(LEFT), NONE)),
    ),
  ];
}

function countOf(bits: Code): Code {
  return i32.from64(i64.ones(bits));
}

/** A bit for each byte of the block, the first one lowest, by a test of sixteen bytes that gives 255 or 0 for each. */
function bitsOf(test: (lane: Code) => Code): Code {
  return LANES.map((lane, i) =>
    i64.shiftLeft(i64.from32(i8x16.bits(test(get(lane)))), i64.of(LANE_BYTES * i)),
  ).reduce(i64.or);
}

/** Each pair of brackets differs in bit 5 alone. */
function isEither(curly: '{' | '}', square: '[' | ']') {
  const bit = i8x16.all(curly.charCodeAt(0) ^ square.charCodeAt(0));
  return (lane: Code) => i8x16.equal(i8x16.or(lane, bit), byteOf(curly));
}

/**
 * Whether bytes may not stand outside strings. A byte may when its two hexadecimal digits have a bit in common: one bit
 * stands for the set of low digits that go with a high one, and `KIND` has at most eight such sets.
 */
function isOther(lane: Code): Code {
  const lows = DIGITS.map((high) => DIGITS.filter((low) => KIND[16 * high + low] !== 0).join());
  const sets = [...new Set(lows)].filter((set) => set !== '');
  const ofHigh = lows.map((low) => (low === '' ? 0 : 1 << sets.indexOf(low)));
  const ofLow = DIGITS.map((low) =>
    sets.reduce((bits, set, i) => bits | (set.split(',').includes(String(low)) ? 1 << i : 0), 0),
  );
  const digitOf = (of: Code) => i8x16.and(of, i8x16.all(15));
  const low = i8x16.lookUp(i8x16.of(ofLow), digitOf(lane));
  const high = i8x16.lookUp(i8x16.of(ofHigh), digitOf(i8x16.shiftPairsRight(lane, i32.of(4))));
  return i8x16.equal(i8x16.and(low, high), i8x16.all(0));
}

const DIGITS = Array.from({ length: 16 }, (_, i) => i);

function byteOf(character: string): Code {
  return i8x16.all(character.charCodeAt(0));
}
