import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  type BodyRead,
  type Malformed,
  methodMember,
  requestBytes,
  writeRequest,
} from '../../../gateway/request/envelope.ts';
import { expectedOf, parsed, readAtOnce as read, summary, textOf } from './body.ts';
import { jsonText, membersText, mutated, objectText } from '../json/json-text.ts';

const bytesOf = (text: string) => Buffer.from(text);

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';
const PARSE_ERROR: Malformed = { kind: 'malformed', code: -32700, reason: 'Parse error' };
const TOO_DEEP: Malformed = { kind: 'malformed', code: -32600, reason: 'Invalid request: nested too deeply' };

const isJson = (envelope: BodyRead) => envelope.kind !== 'malformed' || envelope.code !== -32700;

describe('against JSON.parse', () => {
  test('accepts bytes near JSON exactly when JSON.parse does', () => {
    const text = fc.oneof(
      jsonText,
      membersText.map((members) => objectText(members, '')),
      fc
        .array(membersText, { maxLength: 3 })
        .map((batch) => `[${batch.map((one) => objectText(one, '')).join()}]`),
    );
    let [good, bad] = [0, 0];
    fc.assert(
      fc.property(mutated(text), (bytes) => {
        const expected = parsed(bytes) !== undefined;
        if (expected) good++;
        else bad++;
        expect(isJson(read(bytes))).toBe(expected);
      }),
      { numRuns: 4_000 },
    );
    // The property says nothing when the mutations break everything or nothing.
    expect(Math.min(good, bad)).toBeGreaterThan(400);
  });

  test('reads of every object what its members say, with the own bytes of id and params', () => {
    const kinds = new Map<string, number>();
    fc.assert(
      fc.property(membersText, fc.constantFrom('', ' ', '\n\t'), (members, gap) => {
        const envelope = read(`${gap}${objectText(members, gap)}${gap}`);
        const element = envelope.kind === 'single' ? envelope.elements[0] : undefined;
        expect(summary(element)).toEqual(expectedOf(members));
        kinds.set(element?.kind ?? '', (kinds.get(element?.kind ?? '') ?? 0) + 1);
      }),
      { numRuns: 3_000 },
    );
    for (const kind of ['call', 'notification', 'invalid']) expect(kinds.get(kind) ?? 0).toBeGreaterThan(50);
  });

  test('reads a batch as its elements alone, in order', () => {
    const elements = fc.array(
      fc.oneof(
        membersText.map((members) => objectText(members, ' ')),
        jsonText.filter((text) => !text.startsWith('{')),
      ),
      { minLength: 1, maxLength: 6 },
    );
    fc.assert(
      fc.property(elements, fc.constantFrom('', ' ', '\r\n'), (texts, gap) => {
        const batch = read(`[${gap}${texts.join(`${gap},${gap}`)}${gap}]`);
        const alone = texts.map((text) => {
          const one = read(`[${text}]`);
          return one.kind === 'batch' ? summary(one.elements[0]) : one;
        });
        expect(batch.kind === 'batch' ? batch.elements.map(summary) : batch).toEqual(alone);
      }),
      { numRuns: 500 },
    );
  });
});

const batchOf = (length: number) => `[${Array.from({ length }, () => CALL).join()}]`;

test('of a batch above the bound what follows the first element too many is not read', () => {
  expect(read(`[${CALL},${CALL},${CALL}, garbage ${'['.repeat(1_000)}`, 2)).toEqual({ kind: 'too-long' });
  expect(read(`[${CALL},${CALL}, garbage`, 2)).toEqual(PARSE_ERROR);
  expect(read(batchOf(10_001), 10_000)).toEqual({ kind: 'too-long' });
});

describe('depth', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  const call = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"m","params":${params}}`;

  test('counts the call itself: 63 levels of params pass, 64 do not (§2.1.2)', () => {
    expect(read(call(nested(63))).kind).toBe('single');
    expect(read(call(nested(64)))).toEqual(TOO_DEEP);
  });

  test('counts the batch too: 62 levels of params pass, 63 do not', () => {
    expect(read(`[${call(nested(62))}]`).kind).toBe('batch');
    expect(read(`[${call(nested(63))}]`)).toEqual(TOO_DEEP);
    expect(read(`[1,${nested(63)}]`).kind).toBe('batch');
    expect(read(`[1,${nested(64)}]`)).toEqual(TOO_DEEP);
  });
});

test('a body that is a view into a larger buffer is read by its own bounds', () => {
  const around = bytesOf(`xx{"\\u0069d":"a","jsonrpc":"2.0","method":"m"}yy`);
  const envelope = read(around.subarray(2, -2), 1);
  expect(envelope.kind === 'single' ? summary(envelope.elements[0]) : envelope).toEqual({
    kind: 'call',
    id: '"a"',
    method: 'm',
    params: undefined,
  });
});

test('a request for a backend has the params byte for byte, under an id of our own, and no method leaves its string', () => {
  const params = '[ 1.0,1e2, 18446744073709551615,"\\u0041é",{"b":1,"a":2,"b":3} ]';
  const name = 'a","id":2,"x":"\n';
  const call = {
    kind: 'call',
    id: bytesOf('18446744073709551615'),
    method: name,
    params: bytesOf(params),
  } as const;
  const member = methodMember(name);
  const bytes = Buffer.alloc(requestBytes(call, member));
  const id = bytesOf('"ABCDEFGHIJKLMNOP"');
  expect(writeRequest(call, id, member, bytes, 0)).toBe(bytes.length);
  expect(textOf(bytes)).toBe(
    `{"jsonrpc":"2.0","id":"ABCDEFGHIJKLMNOP","method":${JSON.stringify(name)},"params":${params}}`,
  );
});

test('B7 an id of up to 64 KB is read as it is, and a longer one refused with id null (§2.1.1)', () => {
  const idOf = (bytes: number) => `"${'\\u0069'.repeat((bytes - 2) / 6).padEnd(bytes - 2, 'd')}"`;
  const element = (id: string) => {
    const envelope = read(bytesOf(CALL.replace('"id":1', `"id":${id}`)));
    return envelope.kind === 'single' ? envelope.elements[0] : undefined;
  };
  const longest = element(idOf(65_536));
  expect(longest?.kind === 'call' && textOf(longest.id) === idOf(65_536)).toBe(true);
  expect(element(idOf(65_537))).toMatchObject({ kind: 'invalid', id: bytesOf('null') });
});
