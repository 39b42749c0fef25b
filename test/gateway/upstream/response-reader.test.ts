import { expect, test } from 'bun:test';
import { answerSlot } from '../../../gateway/upstream/backend.ts';
import { readAll } from '../../../gateway/upstream/response-reader.ts';
import { streamBodyOf } from '../stream-body.ts';

const of = (method: string, text: string) => answerSlot(method, new TextEncoder().encode(text));

test.each([
  ['{"jsonrpc":"2.0","result":{"context":{"apiVersion":"4.2.0","slot":314},"value":1},"id":1}', 314],
  ['{"jsonrpc":"2.0","id":"x","result":{"context":{"slot":314},"value":1}}', 314],
  ['{"jsonrpc":"2.0","result":{"context": {"slot":314,"apiVersion":"1"},"value":1},"id":1}', 314],
  ['{"jsonrpc":"2.0","result":{"value":1},"id":1}', 0],
  ['{"jsonrpc":"2.0","result":[{"context":"x"}],"id":1}', 0],
  ['{"jsonrpc":"2.0","error":{"code":-32016,"message":"m"},"id":1}', 0],
  ['{"jsonrpc":"2.0","result":{"context":{"slot":31', 0],
  ['', 0],
])('the context of %p is at %p', (text, slot) => expect(of('getBalance', text)).toBe(slot));

test('the result of getSlot is a slot, and of no other method', () => {
  const text = '{"jsonrpc":"2.0","result":314,"id":1}';
  expect([of('getSlot', text), of('getBlockHeight', text)]).toEqual([314, 0]);
});

test('what stands behind the first bytes is not looked for', () => {
  expect(of('getBalance', `{"x":"${'y'.repeat(300)}","context":{"slot":314}}`)).toBe(0);
});

test('a body is read to its end, up to its bound and not a byte further, and one that breaks off says how', async () => {
  const read = (text: string) => readAll(streamBodyOf(new Response(text).body ?? new ReadableStream()), 4);
  expect(await read('abcd')).toEqual(new TextEncoder().encode('abcd'));
  expect(await read('abcde')).toBe('an answer too long');
  const broken = new ReadableStream({ start: (controller) => controller.error(new Error('gone')) });
  expect(await readAll(streamBodyOf(broken), 4)).toBe('an answer cut: closed');
});
