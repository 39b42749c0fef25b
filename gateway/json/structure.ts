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

/** WebAssembly of an expression: an instruction behind its operands. */
type Code = readonly number[];

/** An instruction by its opcode (core specification 2.0, chapter 5.4). */
const op =
  (...opcode: readonly number[]) =>
  (...operands: readonly Code[]): Code => [...operands.flat(), ...opcode];

/** A number as signed LEB128, which unsigned ones can be read from too. */
function leb(value: number): Code {
  const isLast = value >= -0x40 && value < 0x40;
  return isLast ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...leb(value >> 7)];
}

/** The magic number and version 1. */
const PREAMBLE: Code = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const EMPTY_BLOCK = 0x40;
const END_OPCODE = 0x0b;
const SIMD = 0xfd;

const get = (local: number): Code => [0x20, ...leb(local)];
const set = (local: number, value: Code): Code => [...value, 0x21, ...leb(local)];
const block = (...body: readonly Code[]): Code => [0x02, EMPTY_BLOCK, ...body.flat(), END_OPCODE];
const loop = (...body: readonly Code[]): Code => [0x03, EMPTY_BLOCK, ...body.flat(), END_OPCODE];
const when = (condition: Code, ...then: readonly Code[]): Code =>
  [condition, [0x04, EMPTY_BLOCK], ...then, [END_OPCODE]].flat();
/** Goes to the end of the block, or the start of the loop, that is `depth` levels out. */
const branch = (depth: number): Code => [0x0c, ...leb(depth)];
const branchIf = (depth: number, condition: Code): Code => [...condition, 0x0d, ...leb(depth)];

const i32 = { exceeds: op(0x4b), add: op(0x6a), from64: op(0xa7) };
const int32 = (value: number): Code => [0x41, ...leb(value)];

/** Numbers of 64 bits: most have a bit for each byte of a block, the first one lowest. */
const i64 = {
  isZero: op(0x50),
  differ: op(0x52),
  atMost: op(0x57),
  /** How many bits are 1. */
  ones: op(0x7b),
  add: op(0x7c),
  sub: op(0x7d),
  and: op(0x83),
  or: op(0x84),
  xor: op(0x85),
  shiftLeft: op(0x86),
  /** Signed, so that the highest bit fills the others. */
  shiftRight: op(0x87),
  fromSigned32: op(0xac),
  from32: op(0xad),
};
const int64 = (value: number): Code => [0x42, ...leb(value)];
const not = (bits: Code): Code => i64.xor(bits, int64(-1));

/** Sixteen bytes at a time. */
const i8x16 = {
  /** The byte of the table at each index. */
  lookUp: op(SIMD, 0x0e),
  equal: op(SIMD, 0x23),
  /** Signed. */
  exceeds: op(SIMD, 0x27),
  and: op(SIMD, 0x4e),
  or: op(SIMD, 0x50),
  isAny: op(SIMD, 0x53),
  /** One bit a byte: its highest. */
  bits: op(SIMD, 0x64),
  /** Each pair of bytes shifted by a number of bits, an i32: there is no instruction for bytes on x86. */
  shiftPairsRight: op(SIMD, 0x8d, 0x01),
};
const vectorOf = (bytes: readonly number[]): Code => [SIMD, 0x0c, ...bytes];
const filled = (byte: number): Code => vectorOf(Array<number>(16).fill(byte));
const load = (address: Code, offset: number): Code => [...address, SIMD, 0x00, 0, ...leb(offset)];

/**
 * Walks JSON in blocks of 64 bytes, from byte `at` of the memory over the blocks before `end` that cannot matter: one
 * with a backslash, with a byte that may not stand where it does, or with brackets that may close the value, is left to
 * whoever walks byte by byte. `inString` is -1 inside a string, else 0. Gives where it came to and the state there.
 * About 8 GB/s, where JavaScript makes 1.
 */
type WalkBlocks = (
  at: number,
  end: number,
  depth: number,
  inString: number,
) => readonly [at: number, depth: number, inString: number];

const BLOCK_BYTES = 64;
const LANE_BYTES = 16;
/** Memory for as much as one read of a socket gives, and a page more: it is never all of one piece. */
const MEMORY_PAGES = 17;
const WINDOW_BYTES = 524_288;

const memory = new WebAssembly.Memory({ initial: MEMORY_PAGES });
/** Bytes that lie here are followed in place; others are copied here first. Nothing is kept here beyond a call. */
export const kernelMemory = Buffer.from(memory.buffer);

/** The parameters; then numbers of 64 bits; then a block's vectors. */
const [AT, END, DEPTH, IN_STRING] = [0, 1, 2, 3];
const [LEVEL, WITHIN, QUOTES, OUTSIDE, ODD, OPENED, CLOSED] = [4, 5, 6, 7, 8, 9, 10];
const LANES = [11, 12, 13, 14];
const [I32, I64, V128] = [0x7f, 0x7e, 0x7b];

/** A module that takes a memory and exports the kernel; null on a processor without 128-bit vectors for WebAssembly. */
export function createBlocks(): WalkBlocks | null {
  const section = (id: number, content: Code): Code => [id, ...leb(content.length), ...content];
  const code = [2, 7, I64, 4, V128, ...kernel(), END_OPCODE];
  const bytes = Uint8Array.from([
    ...PREAMBLE,
    ...section(1, [1, 0x60, 4, I32, I32, I32, I32, 3, I32, I32, I32]),
    ...section(2, [1, 0, 1, 0x6d, 2, 0, MEMORY_PAGES]), // the memory "m"
    ...section(3, [1, 0]),
    ...section(7, [1, 1, 0x6b, 0, 0]), // the function "k"
    ...section(10, [1, ...leb(code.length), ...code]),
  ]);
  if (!WebAssembly.validate(bytes)) return null;
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { '': { m: memory } });
  return (exports as unknown as { k: WalkBlocks }).k; // exports have no types of their own; this one was made just now
}

/** Moves `AT` block by block. `LEVEL` and `WITHIN`, which is all bits or none, are the depth and the string at its first byte. */
function kernel(): Code {
  const lanes = LANES.map(get);
  const equalTo = (character: string) =>
    lanes.map((lane) => i8x16.equal(lane, filled(character.charCodeAt(0))));
  const next = i32.add(get(AT), int32(BLOCK_BYTES));
  const leave = (condition: Code) => branchIf(1, condition);
  const quotesUpTo = (bits: number) => i64.xor(get(OUTSIDE), i64.shiftLeft(get(OUTSIDE), int64(bits)));
  const stringAfter = set(WITHIN, i64.shiftRight(not(get(OUTSIDE)), int64(63)));
  const walk = loop(
    leave(i32.exceeds(next, get(END))),
    ...LANES.map((lane, i) => set(lane, load(get(AT), LANE_BYTES * i))),
    leave(i8x16.isAny(equalTo('\\').reduce((a, b) => i8x16.or(a, b)))),
    set(QUOTES, bitsOf(equalTo('"'))),
    // Without a quote, a block that begins inside a string is all string.
    when(i64.isZero(i64.or(get(QUOTES), not(get(WITHIN)))), set(AT, next), branch(1)),
    // Each bit becomes the parity of the quotes up to it: 1 from an opening quote up to its closing one.
    set(OUTSIDE, get(QUOTES)),
    ...[1, 2, 4, 8, 16, 32].map((bits) => set(OUTSIDE, quotesUpTo(bits))),
    set(OUTSIDE, not(i64.xor(get(OUTSIDE), get(WITHIN)))),
    ...LANES.map((lane) => set(lane, classOf(get(lane)))),
    set(ODD, bitsOf(lanes.map((lane) => i8x16.exceeds(filled(TEXT_MIN), lane)))),
    set(ODD, i64.and(get(ODD), i64.and(get(OUTSIDE), not(get(QUOTES))))),
    when(i64.isZero(get(ODD)), stringAfter, set(AT, next), branch(1)),
    set(OPENED, i64.and(get(ODD), bitsOf(lanes))),
    set(CLOSED, i64.and(get(ODD), bitsOf(lanes.map((lane) => i8x16.equal(lane, filled(CLOSES)))))),
    leave(i64.differ(get(ODD), i64.or(get(OPENED), get(CLOSED)))),
    leave(i64.atMost(get(LEVEL), i64.ones(get(CLOSED)))), // one of them may close the value
    set(LEVEL, i64.add(get(LEVEL), i64.sub(i64.ones(get(OPENED)), i64.ones(get(CLOSED))))),
    stringAfter,
    set(AT, next),
    branch(0),
  );
  return [
    set(LEVEL, i64.fromSigned32(get(DEPTH))),
    set(WITHIN, i64.fromSigned32(get(IN_STRING))),
    block(walk),
    get(AT),
    i32.from64(get(LEVEL)),
    i32.from64(get(WITHIN)),
  ].flat();
}

/** A bit for each byte of the block: the highest of each byte of its vectors. */
function bitsOf(lanes: readonly Code[]): Code {
  return lanes
    .map((lane, i) => i64.shiftLeft(i64.from32(i8x16.bits(lane)), int64(LANE_BYTES * i)))
    .reduce((a, b) => i64.or(a, b));
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
  const bitsOfDigit = (digits: 1 | 2) => (digit: string) =>
    CLASSES.reduce((bits, row) => (row[digits].includes(digit) ? bits | row[0] : bits), 0);
  const table = (digits: 1 | 2) => vectorOf([...'0123456789abcdef'].map(bitsOfDigit(digits)));
  const low = i8x16.and(lane, filled(15));
  const high = i8x16.and(i8x16.shiftPairsRight(lane, int32(4)), filled(15));
  return i8x16.and(i8x16.lookUp(table(1), high), i8x16.lookUp(table(2), low));
}

/** What is walked byte by byte doubles up to this where blocks are not passed over: each call of the kernel costs 0.1 µs. */
const STEP_BYTES_MAX = 4_096;
/** The kernel of the process: no walk outlives its `push`. */
const BLOCKS = createBlocks();

/**
 * Follows the structure of one JSON object or array through its bytes, however they are cut: strings, nesting, its end.
 * It does not parse: what it tells is whether the value has ended, goes on, or can no longer be JSON. `blocks` only passes
 * over what cannot matter; null is slower, not other (`bench/structure.ts`).
 */
export class Structure {
  #depth = 0;
  /** -1 inside a string, else 0. */
  #inString = 0;
  /** The bytes so far ended in a string, after an odd run of backslashes. */
  #escaped = false;
  /** There was a byte that cannot belong to one JSON value. */
  isBroken = false;
  #hasBegun = false;

  /** Whether the value has ended and nothing but white space followed. */
  get isComplete(): boolean {
    return this.#hasBegun && this.#depth === 0 && !this.isBroken;
  }

  /** Takes the next bytes; gives false once it is broken. */
  push(bytes: Buffer, blocks = BLOCKS): boolean {
    const { buffer, byteOffset, length } = bytes;
    if (blocks === null) this.#byByte(bytes, 0, length);
    else if (buffer === kernelMemory.buffer) this.#byBlock(blocks, byteOffset, byteOffset + length);
    else
      for (let at = 0; at < length; at += WINDOW_BYTES)
        this.#byBlock(blocks, 0, bytes.copy(kernelMemory, 0, at, at + WINDOW_BYTES));
    return !this.isBroken;
  }

  /** Follows the bytes from one index of the kernel's memory up to another. */
  #byBlock(blocks: WalkBlocks, from: number, to: number): void {
    const bytes = kernelMemory.subarray(0, to);
    let step = BLOCK_BYTES;
    for (let at = from; at < to && !this.isBroken;) {
      const start = at;
      // Before the value has begun, and after it has ended, each byte matters.
      if (this.#depth > 0 && !this.#escaped)
        [at, this.#depth, this.#inString] = blocks(at, to, this.#depth, this.#inString);
      step = at - start > step ? BLOCK_BYTES : Math.min(2 * step, STEP_BYTES_MAX);
      at = this.#byByte(bytes, at, at + step);
    }
  }

  /** Goes on from one index at least up to another; a string is followed to its end. Gives the index it came to. */
  #byByte(bytes: Buffer, from: number, to: number): number {
    // Locals, because a field is written to memory at every step: this halves the time.
    const stop = Math.min(to, bytes.length);
    if (from >= stop) return from;
    let depth = this.#depth;
    let i = this.#inString < 0 ? stringEnd(bytes, from, this.#escaped) : from;
    while (i >= 0 && i < stop) {
      const kind = KIND[bytes[i++] ?? 0] ?? 0;
      if (kind === TEXT && depth > 0) continue;
      if (kind === STRING && depth > 0) i = stringEnd(bytes, i, false);
      else if (kind === CLOSE && depth > 0) depth--;
      else if (kind === OPEN && (depth > 0 || !this.#hasBegun)) {
        depth++;
        this.#hasBegun = true;
      } else if (kind !== SPACE) {
        this.isBroken = true;
        break;
      }
    }
    this.#depth = depth;
    this.#inString = i < 0 ? -1 : 0;
    this.#escaped = i === UNENDED_ESCAPED;
    return i < 0 ? bytes.length : i;
  }
}

/** A string went on past the bytes, and its next character is not escaped, or is. */
const UNENDED = -1;
export const UNENDED_ESCAPED = -2;

/**
 * The index after the string's end, looking from `from`; `escaped` is whether the byte there is. Negative when the
 * string goes on past the bytes.
 */
export function stringEnd(bytes: Buffer, from: number, escaped: boolean): number {
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
