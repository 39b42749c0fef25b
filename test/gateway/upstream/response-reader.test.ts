import { describe, expect, test } from 'bun:test';
import { answerSlot } from '../../../gateway/upstream/backend.ts';
import { mayBeFailure, readAll } from '../../../gateway/upstream/response-reader.ts';
import { streamBodyOf } from '../stream-body.ts';
import fc from 'fast-check';

const slotIn = (method: string, text: string) => answerSlot(method, Buffer.from(text));

test.each([
  ['{"jsonrpc":"2.0","id":"x","result":{"context":{"slot":314},"value":1}}', 314],
  ['{"jsonrpc":"2.0","result":{"context": {"slot":314,"apiVersion":"1"},"value":1},"id":1}', 314],
  ['{"jsonrpc":"2.0","result":{"value":1},"id":1}', 0],
  ['{"jsonrpc":"2.0","result":[{"context":"x"}],"id":1}', 0],
  ['{"jsonrpc":"2.0","result":{"context":{"slot":31', 0],
  ['', 0],
])('the context of %p is at %p', (text, slot) => expect(slotIn('getBalance', text)).toBe(slot));

test('the result of getSlot is a slot, and of no other method; what stands behind the first bytes is not read', () => {
  const text = '{"jsonrpc":"2.0","result":314,"id":1}';
  expect([slotIn('getSlot', text), slotIn('getBlockHeight', text)]).toEqual([314, 0]);
  expect(slotIn('getBalance', `{"x":"${'y'.repeat(300)}","context":{"slot":314}}`)).toBe(0);
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

/** Whether answers that begin so may be failures, whatever members come first, with any white space. */
function everywhere(beginnings: readonly string[], isHeld: boolean): void {
  fc.assert(
    fc.property(members, fc.constantFrom(...beginnings), space, (before, telling, between) => {
      const text = `${between}{${between}${[...before, telling].join(`${between},${between}`)}`;
      expect([text, mayBeFailure(Buffer.from(text))]).toEqual([text, isHeld]);
    }),
  );
}

describe('an answer by its beginning', () => {
  const errors = ['"error":{"code":-32005', '"error" : {', '"result":null,"error":{"code":1'];
  const nulls = ['"result":null', '"result" : n', '"result":null,"x":1'];
  const results = ['"result":1', '"result":"', '"result":"null', '"result":{"error":{', '"result": [null'];

  test('is a failure when it is an error or a null', () => everywhere([...errors, ...nulls], true));

  test('is about to tell when the name of a member that tells has begun', () =>
    everywhere(['"error": ', '"error"', '"err', '"e', '"result":', '"result" ', '"r'], true));

  test('is a result, whatever the result says', () =>
    everywhere([...results, '"result":true,"error":{"code":1', '"result":0,"result":null'], false));

  test('is not known while it says neither', () => {
    everywhere(['"jsonrpc":"2.0"', '"js', '"', '"id":', '"id":"error', '"errors', '"resultx":n'], false);
    for (const text of ['', ' ', '{', '{"', '{}']) expect(mayBeFailure(Buffer.from(text))).toBe(false);
  });
});
