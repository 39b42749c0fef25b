import { BACKSLASH, QUOTE } from './scan.ts';

/** What a byte outside strings is; `OTHER` may not stand there. */
const OTHER = 0;
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
for (const c of '"') KIND[c.charCodeAt(0)] = STRING;

/**
 * Writes WebAssembly from expressions: each is the bytes of an instruction after those of its operands, so that a
 * kernel reads as a formula. Only what this project uses; opcodes are those of the core specification 2.0, chapter 5.4.
 */
type Code = readonly number[];

/** One function over one memory; locals are numbered on after the parameters. */
type Kernel = Readonly<{
  params: readonly ValueType[];
  results: readonly ValueType[];
  locals: readonly ValueType[];
  body: Code;
}>;

type ValueType = 'i32' | 'i64' | 'v128';
const TYPE: Record<ValueType, number> = { i32: 0x7f, i64: 0x7e, v128: 0x7b };

/** The magic number and version 1. */
const PREAMBLE: Code = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const END_OPCODE = 0x0b;
const EMPTY_BLOCK = 0x40;
const SIMD = 0xfd;

/** A module that takes `memory` and exports `kernel`. */
function moduleOf({ params, results, locals, body }: Kernel): Uint8Array<ArrayBuffer> {
  const type = [
    0x60,
    ...vector(params.map((each) => [TYPE[each]])),
    ...vector(results.map((each) => [TYPE[each]])),
  ];
  const code = [...vector(locals.map((each) => [1, TYPE[each]])), ...body, END_OPCODE];
  return Uint8Array.from([
    ...PREAMBLE,
    ...section(1, [type]),
    ...section(2, [[...name(''), ...name('memory'), 2, 0, MEMORY_PAGES]]),
    ...section(3, [[0]]),
    ...section(7, [[...name('kernel'), 0, 0]]),
    ...section(10, [[...unsigned(code.length), ...code]]),
  ]);
}

function section(id: number, entries: readonly Code[]): Code {
  const content = vector(entries);
  return [id, ...unsigned(content.length), ...content];
}

function vector(entries: readonly Code[]): Code {
  return [...unsigned(entries.length), ...entries.flat()];
}

function name(text: string): Code {
  return [...unsigned(text.length), ...Buffer.from(text)];
}

/** A number from 0 to 2^31 - 1 as LEB128. */
function unsigned(value: number): Code {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** A number from -2^31 to 2^31 - 1 as signed LEB128. */
function signed(value: number): Code {
  const isLast = value >= -0x40 && value < 0x40;
  return isLast ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];
}

const unary =
  (...op: number[]) =>
  (a: Code): Code => [...a, ...op];
const binary =
  (...op: number[]) =>
  (a: Code, b: Code): Code => [...a, ...b, ...op];

const get = (local: number): Code => [0x20, ...unsigned(local)];
const set = (local: number, value: Code): Code => [...value, 0x21, ...unsigned(local)];

const block = (...body: readonly Code[]): Code => [0x02, EMPTY_BLOCK, ...body.flat(), END_OPCODE];
const loop = (...body: readonly Code[]): Code => [0x03, EMPTY_BLOCK, ...body.flat(), END_OPCODE];
const when = (condition: Code, ...then: readonly Code[]): Code => [
  ...condition,
  0x04,
  EMPTY_BLOCK,
  ...then.flat(),
  END_OPCODE,
];
/** Goes to the end of the block, or the start of the loop, that is `depth` levels out. */
const branch = (depth: number): Code => [0x0c, ...unsigned(depth)];
const branchIf = (depth: number, condition: Code): Code => [...condition, 0x0d, ...unsigned(depth)];

const i32 = {
  of: (value: number): Code => [0x41, ...signed(value)],
  /** Unsigned. */
  exceeds: binary(0x4b),
  /** Signed. */
  atMost: binary(0x4c),
  add: binary(0x6a),
  sub: binary(0x6b),
  or: binary(0x72),
  from64: unary(0xa7),
};

const i64 = {
  /** A number of 32 bits, sign extended. */
  of: (value: number): Code => [0x42, ...signed(value)],
  isZero: unary(0x50),
  differ: binary(0x52),
  /** How many bits are 1. */
  ones: unary(0x7b),
  sub: binary(0x7d),
  and: binary(0x83),
  or: binary(0x84),
  xor: binary(0x85),
  shiftLeft: binary(0x86),
  /** Signed. */
  shiftRight: binary(0x87),
  shiftRightUnsigned: binary(0x88),
  from32: unary(0xad),
  fromSigned32: unary(0xac),
};

/** Sixteen bytes at a time. */
const i8x16 = {
  of: (bytes: readonly number[]): Code => [SIMD, 0x0c, ...bytes],
  all: (byte: number): Code => [SIMD, 0x0c, ...Array<number>(16).fill(byte)],
  load: (address: Code, offset: number): Code => [...address, SIMD, 0x00, 0, ...unsigned(offset)],
  /** The byte of the table in `a` at each index in `b`. */
  lookUp: binary(SIMD, 0x0e),
  equal: binary(SIMD, 0x23),
  /** Signed. */
  exceeds: binary(SIMD, 0x27),
  and: binary(SIMD, 0x4e),
  or: binary(SIMD, 0x50),
  isAny: unary(SIMD, 0x53),
  /** One bit a byte: its highest. */
  bits: unary(SIMD, 0x64),
  /** Each pair of bytes shifted by a number of bits, an i32: there is no instruction for bytes on x86. */
  shiftPairsRight: binary(SIMD, 0x8d, 0x01),
};

/** Where a walk has come to: a byte of the memory, and the state there. */
type Walked = readonly [at: number, depth: number, inString: number, escaped: number];

/**
 * Walks JSON in blocks of 64 bytes, from byte `at` of the memory over the blocks before `end` that cannot matter: one
 * with a byte that may not stand where it does, or with brackets that may close the value, is left to whoever walks byte
 * by byte. `inString` is -1 inside a string, else 0; `escaped` is 1 when the next byte is escaped, else 0. About 8 GB/s,
 * where JavaScript makes 1.
 */
type WalkBlocks = (at: number, end: number, depth: number, inString: number, escaped: number) => Walked;

const BLOCK_BYTES = 64;
const LANE_BYTES = 16;
const PAGE_BYTES = 65_536;
/** Memory for as much as one read of a socket gives, and a page more: it is never all of one piece. */
const MEMORY_PAGES = 17;
const WINDOW_BYTES = 8 * PAGE_BYTES;

const memory = new WebAssembly.Memory({ initial: MEMORY_PAGES });
/** Bytes that lie here are followed in place; others are copied here first. Nothing is kept here beyond a call. */
export const kernelMemory = Buffer.from(memory.buffer);

/** The kernel, or null on a processor without 128-bit vectors for WebAssembly. */
export function createBlocks(): WalkBlocks | null {
  const bytes = moduleOf({
    params: ['i32', 'i32', 'i32', 'i32', 'i32'],
    results: ['i32', 'i32', 'i32', 'i32'],
    locals: [...Array<'i64'>(11).fill('i64'), ...LANES.map(() => 'v128' as const)],
    body: [
      ...passOver(),
      ...[get(AT), get(DEPTH), ...[WITHIN, FIRST_ESCAPED].map((each) => i32.from64(get(each)))].flat(),
    ],
  });
  if (!WebAssembly.validate(bytes)) return null;
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { '': { memory } });
  // Exports have no types of their own; `moduleOf` made this one just now.
  return (exports as unknown as { kernel: WalkBlocks }).kernel;
}

/** The parameters; then numbers of 64 bits, most of them a bit for each byte of a block; then a block's vectors. */
const [AT, END, DEPTH, IN_STRING, IS_ESCAPED] = [0, 1, 2, 3, 4];
const [
  WITHIN,
  FIRST_ESCAPED,
  NEXT_ESCAPED,
  BACKSLASHES,
  ESCAPED,
  QUOTES,
  OUTSIDE,
  ODD,
  OPENED,
  CLOSED,
  RUNS,
] = [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const LANES = [16, 17, 18, 19];

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
  const after = i64.shiftRight(not(get(OUTSIDE)), i64.of(63));
  return [
    ...set(WITHIN, i64.fromSigned32(get(IN_STRING))),
    ...set(FIRST_ESCAPED, i64.from32(get(IS_ESCAPED))),
    ...block(
      branchIf(0, i32.atMost(get(DEPTH), i32.of(0))), // the value has not begun, or has ended
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
        set(QUOTES, get(OUTSIDE)),
        // Then each bit becomes the parity of the quotes up to it: 1 from an opening quote up to its closing one.
        ...[1, 2, 4, 8, 16, 32].map((by) =>
          set(OUTSIDE, i64.xor(get(OUTSIDE), i64.shiftLeft(get(OUTSIDE), i64.of(by)))),
        ),
        set(OUTSIDE, not(i64.xor(get(OUTSIDE), get(WITHIN)))),
        ...LANES.map((lane) => set(lane, classOf(get(lane)))),
        set(
          ODD,
          i64.and(
            i64.and(get(OUTSIDE), not(get(QUOTES))),
            bitsOf((lane) => i8x16.exceeds(i8x16.all(TEXT_MIN), lane)),
          ),
        ),
        when(i64.isZero(get(ODD)), set(WITHIN, after), nextBlock, branch(1)),
        set(
          OPENED,
          i64.and(
            get(ODD),
            bitsOf((lane) => lane),
          ),
        ),
        set(
          CLOSED,
          i64.and(
            get(ODD),
            bitsOf((lane) => i8x16.equal(lane, i8x16.all(CLOSES))),
          ),
        ),
        leave(i64.differ(get(ODD), i64.or(get(OPENED), get(CLOSED)))),
        // One of them may close the value.
        leave(i32.atMost(get(DEPTH), countOf(get(CLOSED)))),
        set(DEPTH, i32.sub(i32.add(get(DEPTH), countOf(get(OPENED))), countOf(get(CLOSED)))),
        set(WITHIN, after),
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
    set(RUNS, runs),
    set(ESCAPED, i64.xor(get(RUNS), i64.or(get(BACKSLASHES), get(FIRST_ESCAPED)))),
    set(NEXT_ESCAPED, i64.shiftRightUnsigned(i64.and(get(RUNS), get(BACKSLASHES)), i64.of(63))),
  ].flat();
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

/** Brackets by a class of their own; the first is the highest bit, which a vector gives at once. */
const OPENS = 128;
const CLOSES = 1;
/** Classes from here on are text. */
const TEXT_MIN = 2;
/**
 * The class of a byte outside strings is a bit for each set of bytes that share their high and low hexadecimal digits, 0
 * for one that may not stand there. `E`, which no node writes, is left to whoever walks byte by byte.
 */
const CLASSES: readonly (readonly [bit: number, highs: string, lows: string])[] = [
  [OPENS, '57', 'b'],
  [CLOSES, '57', 'd'],
  [2, '37', '2345'],
  [4, '3', '016789a'],
  [8, '6', '156ce'],
  [16, '2', '0bcde'],
  [32, '0', '9ad'],
];

function classOf(lane: Code): Code {
  const table = (digits: 1 | 2) =>
    i8x16.of(
      Array.from({ length: 16 }, (_, digit) =>
        CLASSES.reduce((bits, row) => (row[digits].includes(digit.toString(16)) ? bits | row[0] : bits), 0),
      ),
    );
  const digitOf = (of: Code) => i8x16.and(of, i8x16.all(15));
  const high = i8x16.lookUp(table(1), digitOf(i8x16.shiftPairsRight(lane, i32.of(4))));
  return i8x16.and(high, i8x16.lookUp(table(2), digitOf(lane)));
}

function byteOf(character: string): Code {
  return i8x16.all(character.charCodeAt(0));
}

/**
 * Follows the structure of one JSON value through its bytes, however they are cut: strings, nesting, its end. It does
 * not parse: what it tells is whether the value has ended, goes on, or can no longer be JSON. About 9 GB/s over the
 * accounts of a scan; on a processor without vectors 1, and less where strings are short (`bench/structure.ts`).
 */
export type Structure = Readonly<{
  /** Takes the next bytes; gives false once there was a byte that cannot belong to one JSON value. */
  push(bytes: Buffer): boolean;
  /** Whether the value has ended and nothing but white space followed. */
  isComplete(): boolean;
}>;

/** Below this, copying bytes and calling across costs more than it saves. */
const BLOCKS_FROM_BYTES = 512;
/** What is walked byte by byte where no block could be passed over doubles up to this: it saves calls. */
const STEP_BYTES_MAX = 4_096;

/** Follows a value that is an object or an array. `blocks` only passes over what cannot matter; null is slower, not other. */
export function createStructure(blocks: WalkBlocks | null = sharedBlocks()): Structure {
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

  /** Gives the index from which too little is left to be worth a copy. */
  function byBlock(walk: WalkBlocks, bytes: Buffer): number {
    const isInPlace = bytes.buffer === kernelMemory.buffer;
    let at = 0;
    let step = BLOCK_BYTES;
    while (bytes.length - at >= BLOCKS_FROM_BYTES && !broken) {
      const end = isInPlace ? bytes.length : Math.min(bytes.length, at + WINDOW_BYTES);
      /** Where in the memory the bytes begin. */
      const base = isInPlace ? bytes.byteOffset : -at;
      if (!isInPlace) kernelMemory.set(bytes.subarray(at, end));
      while (at + BLOCK_BYTES <= end && !broken) {
        const [reached, level, within, carried] = walk(
          base + at,
          base + end,
          depth,
          inString ? -1 : 0,
          escaped ? 1 : 0,
        );
        step = reached > base + at ? BLOCK_BYTES : Math.min(2 * step, STEP_BYTES_MAX);
        at = reached - base;
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

let shared: WalkBlocks | null | undefined;

/** One window for the process, made when it is first needed: no walk outlives its `push`. */
function sharedBlocks(): WalkBlocks | null {
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
