/*
 * JSON as Solana writes it: integers are exact, whatever their size, and floats keep a decimal point. Integers are
 * read as bigint; printing sorts members by name, as the maps of Agave's serde do.
 */

/** A value to print, or one that was read. `number` is a float when read, and a safe integer when printed. */
export type Json = null | boolean | string | number | bigint | RawJson | readonly Json[] | JsonObject;

/** Members that are `undefined` are left out when printed. */
export type JsonObject = Readonly<{ [name: string]: Json | undefined }>;

/** Text that is printed as it stands. Made by `rawJson` only. An interface, so that it does not pass for a JsonObject. */
export interface RawJson {
  readonly [raw]: string;
}

const raw: unique symbol = Symbol('raw');

/** JSON text to be put out verbatim. */
export function rawJson(text: string): RawJson {
  return { [raw]: text };
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

/** Prints a value without whitespace. */
export function printJson(value: Json): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object') return String(value);
  if (isJsonArray(value)) return `[${value.map(printJson).join(',')}]`;
  if (isRaw(value)) return value[raw];
  return printObject(value as JsonObject); // what is left when the other kinds of object are gone
}

function printObject(value: JsonObject): string {
  const members: string[] = [];
  for (const name of Object.keys(value).sort()) {
    const member = value[name];
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${printJson(member)}`);
  }
  return `{${members.join(',')}}`;
}
