/**
 * Writes WebAssembly from expressions: each is the bytes of an instruction after those of its operands, so that a
 * kernel reads as a formula. Only what this project uses; opcodes are those of the core specification 2.0, chapter 5.4.
 */
export type Code = readonly number[];

/** One function over one memory of one page; locals are numbered on after the parameters. */
export type Kernel = Readonly<{
  params: readonly ValueType[];
  results: readonly ValueType[];
  locals: readonly ValueType[];
  body: Code;
}>;

export type ValueType = 'i32' | 'i64' | 'v128';
const TYPE: Record<ValueType, number> = { i32: 0x7f, i64: 0x7e, v128: 0x7b };

/** The magic number and version 1. */
const PREAMBLE: Code = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const END_OPCODE = 0x0b;
const EMPTY_BLOCK = 0x40;
const SIMD = 0xfd;

/** A module that exports `memory`, of one page, and `kernel`. */
export function moduleOf({ params, results, locals, body }: Kernel): Uint8Array<ArrayBuffer> {
  const type = [
    0x60,
    ...vector(params.map((each) => [TYPE[each]])),
    ...vector(results.map((each) => [TYPE[each]])),
  ];
  const code = [...vector(locals.map((each) => [1, TYPE[each]])), ...body, END_OPCODE];
  return Uint8Array.from([
    ...PREAMBLE,
    ...section(1, [type]),
    ...section(3, [[0]]),
    ...section(5, [[0, 1]]),
    ...section(7, [
      [...name('memory'), 2, 0],
      [...name('kernel'), 0, 0],
    ]),
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
export function unsigned(value: number): Code {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** A number from -2^31 to 2^31 - 1 as signed LEB128. */
export function signed(value: number): Code {
  const isLast = value >= -0x40 && value < 0x40;
  return isLast ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];
}

const unary =
  (...op: number[]) =>
  (a: Code): Code => [...a, ...op];
const binary =
  (...op: number[]) =>
  (a: Code, b: Code): Code => [...a, ...b, ...op];

export const get = (local: number): Code => [0x20, ...unsigned(local)];
export const set = (local: number, value: Code): Code => [...value, 0x21, ...unsigned(local)];

export const block = (...body: readonly Code[]): Code => [0x02, EMPTY_BLOCK, ...body.flat(), END_OPCODE];
export const loop = (...body: readonly Code[]): Code => [0x03, EMPTY_BLOCK, ...body.flat(), END_OPCODE];
export const when = (condition: Code, ...then: readonly Code[]): Code => [
  ...condition,
  0x04,
  EMPTY_BLOCK,
  ...then.flat(),
  END_OPCODE,
];
/** Goes to the end of the block, or the start of the loop, that is `depth` levels out. */
export const branch = (depth: number): Code => [0x0c, ...unsigned(depth)];
export const branchIf = (depth: number, condition: Code): Code => [...condition, 0x0d, ...unsigned(depth)];

export const i32 = {
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

export const i64 = {
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
export const i8x16 = {
  of: (bytes: readonly number[]): Code => [SIMD, 0x0c, ...bytes],
  all: (byte: number): Code => [SIMD, 0x0c, ...Array<number>(16).fill(byte)],
  load: (address: Code, offset: number): Code => [...address, SIMD, 0x00, 0, ...unsigned(offset)],
  /** The byte of the table in `a` at each index in `b`. */
  lookUp: binary(SIMD, 0x0e),
  equal: binary(SIMD, 0x23),
  and: binary(SIMD, 0x4e),
  or: binary(SIMD, 0x50),
  isAny: unary(SIMD, 0x53),
  /** One bit a byte: its highest. */
  bits: unary(SIMD, 0x64),
  /** Each pair of bytes shifted by a number of bits, an i32: there is no instruction for bytes on x86. */
  shiftPairsRight: binary(SIMD, 0x8d, 0x01),
};
