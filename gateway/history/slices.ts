import {
  BAD,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  afterName,
  afterSpace,
  afterString,
  afterValue,
} from '../json/scan.ts';

/** One member of an object: its decoded name, its value's bytes, and the bytes of both. */
export type Member = Readonly<{ name: string; value: Uint8Array; whole: Uint8Array }>;

/** The values of a JSON array as slices of its bytes; `undefined` when it is none. */
export function elementsOf(json: Uint8Array): readonly Uint8Array[] | undefined {
  const elements: Uint8Array[] = [];
  let i = afterSpace(json, 0);
  if (json[i] !== OPEN_ARRAY) return undefined;
  i = afterSpace(json, i + 1);
  if (json[i] === CLOSE_ARRAY) return elements;
  for (;;) {
    const end = afterValue(json, i);
    if (end < 0) return undefined;
    elements.push(json.subarray(i, end));
    const next = afterSpace(json, end);
    if (json[next] === CLOSE_ARRAY) return elements;
    if (json[next] !== COMMA) return undefined;
    i = afterSpace(json, next + 1);
  }
}

/** The members of a JSON object in their order, repeated ones too; `undefined` when it is none. */
export function membersOf(json: Uint8Array): readonly Member[] | undefined {
  const members: Member[] = [];
  let i = afterSpace(json, 0);
  if (json[i] !== OPEN_OBJECT) return undefined;
  i = afterSpace(json, i + 1);
  if (json[i] === CLOSE_OBJECT) return members;
  for (;;) {
    const colon = afterName(json, i);
    if (colon === BAD) return undefined;
    const from = afterSpace(json, colon);
    const end = afterValue(json, from);
    if (end < 0) return undefined;
    const name = textIn(json.subarray(i, afterString(json, i))) ?? '';
    members.push({ name, value: json.subarray(from, end), whole: json.subarray(i, end) });
    const next = afterSpace(json, end);
    if (json[next] === CLOSE_OBJECT) return members;
    if (json[next] !== COMMA) return undefined;
    i = afterSpace(json, next + 1);
  }
}

/** The value of a member's last appearance, as `JSON.parse` takes it. */
export function memberOf(json: Uint8Array, name: string): Uint8Array | undefined {
  return membersOf(json)?.findLast((member) => member.name === name)?.value;
}

/** The text of a JSON string; `undefined` for another value. */
export function textIn(json: Uint8Array): string | undefined {
  if (json[0] !== QUOTE) return undefined;
  const quoted = viewOf(json).toString();
  return quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
}

/** A whole number below 10^15, as slots and limits are; `undefined` for another value. */
export function numberIn(json: Uint8Array | undefined): number | undefined {
  if (json === undefined || json.length > 15) return undefined;
  const digits = viewOf(json).toString('latin1');
  return /^\d+$/.test(digits) ? Number(digits) : undefined;
}

/** Whether a value is there and is `null`; one that is absent is not. */
export function isNull(json: Uint8Array | undefined): boolean {
  return json !== undefined && json.length === 4 && json[0] === 0x6e;
}

/** Texts and slices as one piece of JSON. */
export function joined(parts: readonly (string | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(
    Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))),
  );
}

/** Slices with commas between them. */
export function listed(slices: readonly Uint8Array[]): readonly (string | Uint8Array)[] {
  return slices.flatMap((slice, i) => (i === 0 ? [slice] : [',', slice]));
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
