/*
 * JSON as Solana writes it: integers are exact, whatever their size, and floats keep a decimal point. Integers are
 * read as bigint; printing sorts members by name, as the maps of Agave's serde do.
 */

/** A value to print, or one that was read. `number` is a float when read, and a safe integer when printed. */
export type Json = null | boolean | string | number | bigint | RawJson | readonly Json[] | JsonObject;

/** Members that are `undefined` are left out when printed. */
export type JsonObject = Readonly<{ [name: string]: Json | undefined }>;

type MakePieces = () => Iterable<string>;

/** Text that is printed as it stands, or made in pieces when it is written. A class, so that it is no JsonObject. */
class RawJson {
  constructor(readonly text: string | MakePieces) {}
}

/** JSON text too large to hold: `make` gives its pieces, in order, each time it is written. */
export function piecesJson(make: MakePieces): Json {
  return new RawJson(make);
}

const INTEGERS_PER_PIECE = 4_096;

/** The list of all integers from one to another, made as it is written: half a million of them would be heavy to hold. */
export function integersJson(first: number, last: number): Json {
  if (last < first) return [];
  return piecesJson(function* () {
    for (let from = first; from <= last; from += INTEGERS_PER_PIECE) {
      const length = Math.min(INTEGERS_PER_PIECE, last - from + 1);
      yield `${from === first ? '[' : ','}${Array.from({ length }, (_, index) => from + index).join(',')}`;
    }
    yield ']';
  });
}

/** A float as serde prints an f64: always with a decimal point or an exponent. */
export function float(value: number): Json {
  const text = String(value);
  return new RawJson(/[.e]/.test(text) ? text.replace('e+', 'e') : `${text}.0`);
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RawJson);
}

export function isJsonArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** Reads a text. Integers become bigint, floats number. Throws SyntaxError, or RangeError when nested too deeply. */
export function parseJson(text: string): Json {
  return JSON.parse(text, readNumber);
}

function readNumber(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  return /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
}

/** Prints a value without whitespace, whatever its size. */
export function printJson(value: Json): string {
  return print(value, (make) => Array.from(make()).join(''));
}

// No JSON text has it: inside strings it is escaped, outside it is not allowed.
const GAP = '\0';

/**
 * The text of a value in pieces, `head` before it and `tail` behind: what `piecesJson` stands for is made only when it is
 * reached, the rest now. Nothing is given out before the first maker has begun, which may hold what its end releases.
 */
export function* printJsonPieces(value: Json, head = '', tail = ''): Generator<string> {
  const makers: MakePieces[] = [];
  const [first = '', ...texts] = print(value, (make) => {
    makers.push(make);
    return GAP;
  }).split(GAP);
  let text = head + first;
  for (const [index, make] of makers.entries()) {
    for (const piece of make()) {
      yield text + piece;
      text = '';
    }
    text += texts[index] ?? '';
  }
  yield text + tail;
}

function print(value: Json, printMade: (make: MakePieces) => string): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object') return String(value);
  if (isJsonArray(value)) return `[${value.map((item) => print(item, printMade)).join(',')}]`;
  if (value instanceof RawJson) return typeof value.text === 'string' ? value.text : printMade(value.text);
  return printObject(value as JsonObject, printMade); // what is left when the other kinds of object are gone
}

function printObject(value: JsonObject, printMade: (make: MakePieces) => string): string {
  const members: string[] = [];
  for (const name of Object.keys(value).sort()) {
    const member = value[name];
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${print(member, printMade)}`);
  }
  return `{${members.join(',')}}`;
}
