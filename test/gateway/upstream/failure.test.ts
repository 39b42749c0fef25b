import { describe, expect, test } from 'bun:test';
import { failureOf } from '../../../gateway/upstream/failure.ts';

describe('the error of an answer', () => {
  const of = (text: string) => failureOf(new TextEncoder().encode(text));
  test.each([
    [
      '{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is behind","data":{"numSlotsBehind":7}},"id":1}\n',
      -32005,
    ],
    ['{"id":1,"jsonrpc":"2.0","error":{"message":"x","code":-32007}}', -32007],
    ['{"jsonrpc":"2.0","result":null,"error":{"code":429,"message":"slow down"},"id":1}', 429],
    ['{"jsonrpc":"2.0","error":"text","id":1}', 0],
    ['{"jsonrpc":"2.0","error":{"code":"x"},"id":1}', 0],
  ])('%s', (text, code) => expect(of(text)?.code).toBe(code));

  test.each([
    '{"jsonrpc":"2.0","result":{"error":{"code":1}},"id":1}',
    '{"jsonrpc":"2.0","result":"\\"error\\"","id":1}',
    '{"jsonrpc":"2.0","result":1,"error":null,"id":1}',
    '{"error"',
    '',
  ])('%s has none', (text) => expect(of(text)).toBeUndefined());
});
