import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { afterValue, SLICE_BYTES } from '../../../gateway/json/scan.ts';
import { readEnvelope } from '../../../gateway/request/envelope.ts';
import { jsonText, membersText, mutated, objectText } from '../json/json-text.ts';
import { readAtOnce } from './body.ts';

/** `unit` again and again, with commas between, up to about so many bytes. */
const filled = (unit: string, bytes: number) =>
  Array(Math.ceil(bytes / (unit.length + 1)))
    .fill(unit)
    .join();

const call = (params: string, more = '') =>
  `{"jsonrpc":"2.0","id":1,"method":"getSlot","params":${params}${more}}`;

/** Bodies whose every byte is dear, of about so many bytes. */
const hostile: Readonly<Record<string, (bytes: number) => string>> = {
  members: (bytes) => call('[]', `,${filled('"a":1', bytes)}`),
  'escaped names': (bytes) => call('[]', `,${filled('"\\u0061":1', bytes)}`),
  'a batch of calls with members': (bytes) =>
    `[${filled(call('[]', `,${filled('"\\n":1', 2_000)}`), bytes)}]`,
  'members of params': (bytes) => call(`{${filled('"a":1', bytes)}}`),
  arrays: (bytes) => call(`[${filled('[]', bytes)}]`),
  nesting: (bytes) => call(`[${filled('['.repeat(62) + ']'.repeat(62), bytes)}]`),
  numbers: (bytes) => call(`[${filled('-1.5e+3', bytes)}]`),
  literals: (bytes) => call(`[${filled('null', bytes)}]`),
  texts: (bytes) => call(`[${filled('"a"', bytes)}]`),
  escapes: (bytes) => call(`["${'\\u0041'.repeat(bytes / 6)}"]`),
  'a method': (bytes) => `{"jsonrpc":"2.0","id":1,"method":"${'\\u0061'.repeat(bytes / 6)}"}`,
  'a version': (bytes) => `{"jsonrpc":"${'\\u0061'.repeat(bytes / 6)}","id":1,"method":"m"}`,
  'white space': (bytes) => call(`[${' '.repeat(bytes)}]`),
};
const kinds = Object.entries(hostile);

describe('F12 a long body', () => {
  test('F12 is the same however it is sliced', async () => {
    const text = fc.oneof(
      jsonText,
      membersText.map((members) => objectText(members, ' ')),
      fc
        .array(membersText, { maxLength: 3 })
        .map((batch) => `[${batch.map((one) => objectText(one, '')).join()}]`),
    );
    await fc.assert(
      fc.asyncProperty(mutated(text), fc.integer({ min: 1, max: 9 }), async (bytes, sliceBytes) => {
        expect(await readEnvelope(Buffer.from(bytes), 2, sliceBytes)).toEqual(readAtOnce(bytes, 2));
      }),
      { numRuns: 1_000 },
    );
  });

  /** Bytes that count how often one of them is looked at. */
  function counting(bytes: Buffer) {
    let steps = 0;
    const counted = new Proxy(bytes, {
      get(target, index) {
        steps++;
        return Reflect.get(target, index);
      },
    });
    return { counted, steps: () => steps };
  }

  test.each(kinds)('F12 of %s takes a few steps a byte', (_name, bodyOf) => {
    const bytes = Buffer.from(bodyOf(20_000));
    const { counted, steps } = counting(bytes);
    expect(afterValue(counted, 0)).toBe(bytes.length);
    expect(steps() / bytes.length).toBeLessThan(6);
  });

  test('F12 of any bytes too, JSON or not', () => {
    const repeated = fc.tuple(
      mutated(jsonText),
      fc.integer({ min: 1, max: 50 }),
      fc.constantFrom('', ',', ':', '['),
    );
    fc.assert(
      fc.property(repeated, ([unit, times, between]) => {
        const one = Buffer.concat([unit, Buffer.from(between)]);
        const bytes = Buffer.concat([Buffer.from('['), ...Array<Buffer>(times).fill(one)]);
        const { counted, steps } = counting(bytes);
        afterValue(counted, 0);
        expect(steps()).toBeLessThan(6 * bytes.length + 30);
      }),
      { numRuns: 500 },
    );
  });

  test('F12 is read in turns of the loop that no other has, whatever it holds', async () => {
    let turns = 0;
    let isOver = false;
    const count = () => void (isOver || (turns++, setImmediate(count)));
    count();
    const bodies = kinds.filter(([name]) => name !== 'white space' && !/^a (?!batch)|escapes/.test(name));
    const reads = bodies.map(([, bodyOf]) => readEnvelope(Buffer.from(bodyOf(500_000)), 1_000));
    for (const read of await Promise.all(reads)) expect(read.kind).not.toBe('malformed');
    isOver = true;
    // Of 64 KB each.
    expect(turns).toBeGreaterThanOrEqual(bodies.length * 7);
  });
});

test('F12 many bodies that come at once are read in turns of the loop, a slice of all in each', async () => {
  let turns = 0;
  let isOver = false;
  const count = () => void (isOver || (turns++, setImmediate(count)));
  count();
  const body = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"m","params":[${'[],'.repeat(10_000)}1]}`);
  const short = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"m"}');
  const reads = Array.from({ length: 40 }, () => readEnvelope(body, 1_000));
  expect(readEnvelope(short, 1_000)).not.toBeInstanceOf(Promise);
  for (const read of await Promise.all(reads)) expect(read.kind).toBe('single');
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual((40 * body.length) / (2 * SLICE_BYTES));
});

describe('F12 what is bounded', () => {
  const reasonOf = (text: string) => {
    const read = readAtOnce(text);
    return 'elements' in read ? read.elements[0] : read;
  };

  test('F12 a call has 64 members at most; behind them there may be another id (§2.1.2)', () => {
    const more = (count: number) => Array.from({ length: count }, (_, i) => `,"${i}":${i}`).join('');
    expect(reasonOf(call('[]', more(60)))?.kind).toBe('call');
    for (const one of [call('[]', more(61)), call('[]', `${more(60)},"id":2`)])
      expect(reasonOf(one)).toEqual({
        kind: 'invalid',
        id: Buffer.from('null'),
        reason: 'Invalid request: more than 64 members',
      });
  });

  test('F12 a name counts however it is escaped', () => {
    const escaped = [...'jsonrpc'].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join('');
    expect(reasonOf(call('[]', `,"${escaped}":"2.0"`))).toMatchObject({
      reason: 'Invalid request: two members named jsonrpc',
    });
  });

  test('F12 a method of more than a kilobyte is one that nobody serves', () => {
    const method = (name: string) => reasonOf(`{"jsonrpc":"2.0","id":1,"method":"${name}"}`);
    expect(method('m'.repeat(1_022))).toMatchObject({ kind: 'call', method: 'm'.repeat(1_022) });
    expect(method('m'.repeat(1_023))).toMatchObject({ kind: 'call', method: '' });
  });
});
