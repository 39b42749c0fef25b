import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { answerSlot } from '../../../gateway/upstream/backend.ts';
import { startKindOf } from '../../../gateway/upstream/response-reader.ts';
import { readAll } from '../../../gateway/http/stream-body.ts';
import { streamBodyOf } from '../stream-body.ts';

const slotIn = (where: 'context' | 'result', text: string) => answerSlot(where, Buffer.from(text));

const DATA = '{"context":{"slot":999},"slot":999,"result":{"context":{"slot":999}}}';
const rpc = (result: string) => `{"jsonrpc":"2.0","result":${result},"id":1}\n`;

test.each([
  ['{"jsonrpc":"2.0","id":"x","result":{"context":{"slot":314},"value":1}}', 314],
  [' {\n"jsonrpc" : "2.0" , "result" : { "context" : { "slot" : 314 } } , "id":1}', 314],
  [rpc('{"context": {"slot":314,"apiVersion":"1"},"value":1}'), 314],
  [rpc('{"context":{"apiVersion":"3.1.8","slot":314},"value":1}'), 314],
  [rpc(`{"context":{"slot":314},"value":${DATA}}`), 314],
  [rpc(`{"value":${DATA},"context":{"slot":314}}`), 314],
  [rpc(`{"value":[${DATA}],"context":{"data":${DATA},"slot":314}}`), 314],
  [rpc(`{"value":${JSON.stringify(DATA)},"context":{"slot":314}}`), 314],
  [`{"x":${DATA},"result":{"context":{"slot":314}},"id":1}`, 314],
  [`{"id":${JSON.stringify(DATA)},"result":{"context":{"slot":314}}}`, 314],
  // No context of the result's own.
  [rpc('{"value":1}'), 0],
  [rpc(`{"value":${DATA}}`), 0],
  [rpc(`[${DATA}]`), 0],
  [rpc(`[{"account":${DATA},"pubkey":"x"}]`), 0],
  [rpc(JSON.stringify(DATA)), 0],
  [rpc('{"slot":999,"blockTime":1}'), 0],
  [rpc('{"context":[{"slot":999}],"slot":999}'), 0],
  [rpc('{"context":"slot","slot":999}'), 0],
  [rpc('{"context":null,"value":{"slot":999}}'), 0],
  [rpc('{"context":{},"slot":999}'), 0],
  [rpc('{"context":{"x":{"slot":999}}}'), 0],
  [rpc('{"\\"context":{"slot":999}}'), 0],
  [`{"context":{"slot":999},"result":1}`, 0],
  [`{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":${DATA}},"id":1}`, 0],
  // No slot.
  ...['-1', '1.5', '1e3', '"314"', 'null', '[314]', '9999999999999999'].map((slot): [string, number] => [
    rpc(`{"context":{"slot":${slot}}}`),
    0,
  ]),
  // Cut, or no JSON.
  ['{"jsonrpc":"2.0","result":{"context":{"slot":31', 0],
  ['{"jsonrpc":"2.0","result":{"value":"\\"context\\":{\\"slot\\":999},', 0],
  ['{"jsonrpc" "result":{"context":{"slot":999}}}', 0],
  [`[${rpc('{"context":{"slot":999}}')}]`, 0],
  ['', 0],
])('the context of %p is at %p', (text, slot) => expect(slotIn('context', text)).toBe(slot));

test('a slot is that of the context of the result, whatever else has its name', () => {
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.nat(1_000),
      fc.constantFrom('"context":{"slot":999}', '\\', null),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('context', 'slot', 'result', '"slot"', 'value'), tie('tree'), {
        maxKeys: 4,
      }),
    ),
  }));
  let found = 0;
  fc.assert(
    fc.property(tree, tree, tree, (first, result, slot) => {
      const text = JSON.stringify({
        value: first,
        result: { value: result, context: { value: slot, slot } },
      });
      const expected = typeof slot === 'number' && text.length < 1_000 ? slot : 0;
      if (expected > 0) found++;
      if (text.length < 1_000) expect([text, slotIn('context', text)]).toEqual([text, expected]);
      const alone = JSON.stringify({ result: first });
      const own = Object(Object(Object(first))['context'])['slot'];
      expect([alone, slotIn('context', alone)]).toEqual([alone, typeof own === 'number' ? own : 0]);
    }),
    { numRuns: 2_000 },
  );
  expect(found).toBeGreaterThan(100);
});

test('the result of getSlot is a slot, and of no other method; what stands behind the first bytes is not read', () => {
  const text = rpc('314');
  expect([slotIn('result', text), slotIn('context', text)]).toEqual([314, 0]);
  expect(slotIn('result', rpc(`{"context":{"slot":314}}`))).toBe(0);
  expect(slotIn('result', `{"id":{"result":314}}`)).toBe(0);
  expect(slotIn('context', rpc(`{"x":"${'y'.repeat(1_024)}","context":{"slot":314}}`))).toBe(0);
});

test('a body is read to its end, up to its bound and not a byte further, and one that breaks off says how', async () => {
  const read = (text: string) => readAll(streamBodyOf(new Response(text).body ?? new ReadableStream()), 4);
  expect(await read('abcd')).toEqual(new TextEncoder().encode('abcd'));
  expect(await read('abcde')).toBe('an answer too long');
  const broken = new ReadableStream({ start: (controller) => controller.error(new Error('gone')) });
  expect(await readAll(streamBodyOf(broken), 4)).toBe('an answer cut: closed');
});

const OTHERS = [
  '"jsonrpc":"2.0"',
  '"id":1',
  '"id":"a\\"}"',
  '"id":null',
  '"x":{"error":1,"result":2}',
  '"y":["error","result",{}]',
  '"error":null',
  '"z":"error"',
  '"err":1',
  '"results":[]',
  '"errors":[]',
  '"e\\u0072ror":{}',
];
const members = fc.array(fc.constantFrom(...OTHERS), { maxLength: 4 });
const space = fc.constantFrom('', ' ', '\n\t');

/** What answers are that begin so, whatever members come first, with any white space. */
function everywhere(beginnings: readonly string[], expected: ReturnType<typeof startKindOf>): void {
  fc.assert(
    fc.property(members, fc.constantFrom(...beginnings), space, (before, telling, between) => {
      const text = `${between}{${between}${[...before, telling].join(`${between},${between}`)}`;
      expect([text, startKindOf(Buffer.from(text))]).toEqual([text, expected]);
    }),
  );
}

describe('an answer by its beginning', () => {
  const results = ['"result":1', '"result":"', '"result":"null', '"result":{"error":{', '"result": [null'];

  test('is an error', () => everywhere(['"error":{"code":-32005', '"error" : {', '"error":"text"'], 'error'));

  test('is a null', () =>
    everywhere(['"result":null', '"result" : n', '"result":null,"error":{"code":1'], 'null'));

  test('is about to tell when the name of a member that tells has begun', () =>
    everywhere(['"error": ', '"error"', '"err', '"e', '"result":', '"result" ', '"r'], 'open'));

  test('is a result, whatever the result says', () =>
    everywhere([...results, '"result":true,"error":{"code":1', '"result":0,"result":null'], 'result'));

  test('is not known while it says neither', () => {
    everywhere(['"jsonrpc":"2.0"', '"js', '"', '"id":', '"id":"error', '"errors', '"resultx":n'], undefined);
    for (const text of ['', ' ', '{', '{"', '{}']) expect(startKindOf(Buffer.from(text))).toBeUndefined();
  });
});
