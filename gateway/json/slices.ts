import { OPEN_ARRAY, OPEN_OBJECT, Walk, afterSpace, afterString, isTextAt, textIn } from './scan.ts';

/** One member of an object: its decoded name, its value's bytes, and the bytes of both. */
type Member = Readonly<{ name: string; value: Buffer; whole: Buffer }>;

/** The values of a JSON array as slices of its bytes; `undefined` when it is none. */
export function elementsOf(json: Uint8Array | undefined): readonly Buffer[] | undefined {
  const values: Buffer[] = [];
  const isArray = eachItem(json, OPEN_ARRAY, (bytes, from, to) => values.push(bytes.subarray(from, to)));
  return isArray ? values : undefined;
}

/** The members of a JSON object in their order, repeated ones too; `undefined` when it is none. */
export function membersOf(json: Uint8Array | undefined): readonly Member[] | undefined {
  const members: Member[] = [];
  const isObject = eachItem(json, OPEN_OBJECT, (bytes, from, to, nameFrom) => {
    const name = textIn(bytes.subarray(nameFrom, afterString(bytes, nameFrom))) ?? '';
    members.push({ name, value: bytes.subarray(from, to), whole: bytes.subarray(nameFrom, to) });
  });
  return isObject ? members : undefined;
}

type OnItem = (bytes: Buffer, from: number, to: number, nameFrom: number) => void;

/** Gives the elements or members of a value that opens so; false: it is none, whatever was given. */
function eachItem(json: Uint8Array | undefined, opening: number, onItem: OnItem): boolean {
  if (json === undefined) return false;
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.length);
  const open = afterSpace(bytes, 0);
  if (bytes[open] !== opening) return false;
  const walk = new Walk(bytes, open, 1, {
    onValue(depth, from, to, nameFrom) {
      if (depth === 1) onItem(bytes, from, to, nameFrom);
      return false;
    },
  });
  return walk.go() >= 0;
}

/** The values of all members of that name, in their order, however it is escaped. The others cost a few steps each. */
export function valuesOf(json: Uint8Array | undefined, name: string): readonly Buffer[] {
  const values: Buffer[] = [];
  const quoted = Buffer.from(JSON.stringify(name));
  const isObject = eachItem(json, OPEN_OBJECT, (bytes, from, to, nameFrom) => {
    if (isTextAt(bytes, nameFrom, quoted, name)) values.push(bytes.subarray(from, to));
  });
  return isObject ? values : [];
}

/** The value of a member's last appearance, as `JSON.parse` takes it. */
export function memberOf(json: Uint8Array | undefined, name: string): Buffer | undefined {
  return valuesOf(json, name).at(-1);
}

/** The config in the second place of parameters. */
export function configOf(params: Uint8Array | undefined): Buffer | undefined {
  return elementsOf(params)?.[1];
}

/** Parameters without those members of their config whose names are not kept; every byte beside them stays the caller's. */
export function withConfig(params: Uint8Array, keeps: (name: string) => boolean): Uint8Array {
  const members = membersOf(configOf(params)) ?? [];
  const kept = members.flatMap(({ name, whole }) => (keeps(name) ? [whole] : []));
  const [first] = members;
  const last = members.at(-1);
  if (first === undefined || last === undefined || kept.length === members.length) return params;
  const from = first.whole.byteOffset - params.byteOffset;
  const to = last.whole.byteOffset + last.whole.length - params.byteOffset;
  return joined([params.subarray(0, from), ...listed(kept), params.subarray(to)]);
}

/** A whole number below 10^15, as slots and limits are; `undefined` for another value. */
export function numberIn(json: Buffer | undefined): number | undefined {
  if (json === undefined || json.length > 15) return undefined;
  const digits = json.toString();
  return /^\d+$/.test(digits) ? Number(digits) : undefined;
}

/** Texts and slices as one piece of JSON. */
export function joined(parts: readonly (string | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
}

function listed(slices: readonly Uint8Array[]): readonly Uint8Array[] {
  return slices.flatMap((slice, i) => (i === 0 ? [slice] : [COMMA, slice]));
}

const COMMA = Buffer.from(',');

/** Slices as the elements of one array. */
export function arrayOf(slices: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return joined(['[', ...listed(slices), ']']);
}
