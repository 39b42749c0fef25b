/*
 * JSON as Solana writes it: integers are exact, whatever their size, and floats keep a decimal point. Integers are
 * read as bigint; printing sorts members by name, as the maps of Agave's serde do.
 */

/** A value to print, or one that was read. `number` is a float when read, and a safe integer when printed. */
export type Json = null | boolean | string | number | bigint | RawJson | readonly Json[] | JsonObject;

/** Members that are `undefined` are left out when printed. */
export type JsonObject = Readonly<{ [name: string]: Json | undefined }>;

/**
 * Text that is printed as it stands, or that is made in pieces when it is written. Made by `rawJson` and `piecesJson`
 * only. An interface, so that it does not pass for a JsonObject.
 */
interface RawJson {
  readonly [raw]: string | MakePieces;
}

type MakePieces = () => Iterable<string>;

const raw: unique symbol = Symbol('raw');

/** JSON text to be put out verbatim. */
function rawJson(text: string): RawJson {
  return { [raw]: text };
}

/** JSON text too large to hold: `make` gives its pieces, in order, each time it is written. */
export function piecesJson(make: MakePieces): RawJson {
  return { [raw]: make };
}

/** A float as serde prints an f64: always with a decimal point or an exponent. */
export function float(value: number): RawJson {
  const text = String(value);
  return rawJson(/[.e]/.test(text) ? text.replace('e+', 'e') : `${text}.0`);
}

function isRaw(value: object): value is RawJson {
  return raw in value;
}

/** Whether a value is an object with members. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRaw(value);
}

/** Whether a value is a list. */
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

/** The text of a value in pieces: what `piecesJson` stands for is made only when it is reached, the rest now. */
export function printJsonPieces(value: Json): Iterable<string> {
  const makers: MakePieces[] = [];
  const texts = print(value, (make) => {
    makers.push(make);
    return GAP;
  }).split(GAP);
  return makers.length === 0 ? texts : interleave(texts, makers);
}

function* interleave(texts: readonly string[], makers: readonly MakePieces[]): Generator<string> {
  for (const [index, text] of texts.entries()) {
    yield text;
    yield* makers[index]?.() ?? [];
  }
}

function print(value: Json, printMade: (make: MakePieces) => string): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object') return String(value);
  if (isJsonArray(value)) return `[${value.map((item) => print(item, printMade)).join(',')}]`;
  if (isRaw(value)) {
    const text = value[raw];
    return typeof text === 'string' ? text : printMade(text);
  }
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
