import { expect, test } from 'bun:test';
import { rpcError, rpcResult } from '../../../gateway/respond/refusal.ts';

const textOf = (code: number, message: string, id: string) =>
  new TextDecoder().decode(rpcError(code, message, new TextEncoder().encode(id)));

test('an error has the three members and no other, in the order of the field', () => {
  expect(textOf(-32601, 'Method not found', '1')).toBe(
    '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}',
  );
});

test.each([['null'], ['18446744073709551615'], ['"\\u0031\\ud800é"'], ['""']])(
  'the id %s is echoed byte for byte',
  (id) => {
    expect(textOf(-429, 'm', id)).toEndWith(`"id":${id}}`);
  },
);

test('a message with quotes and controls stays in its string', () => {
  expect(JSON.parse(textOf(1, 'a"},"id":2,\n\u2028é', '3'))).toEqual({
    jsonrpc: '2.0',
    error: { code: 1, message: 'a"},"id":2,\n\u2028é' },
    id: 3,
  });
});

test('a result of our own has the same form', () => {
  const bytes = rpcResult('{"a":1}', new TextEncoder().encode('"\\u0031"'));
  expect(new TextDecoder().decode(bytes)).toBe('{"jsonrpc":"2.0","result":{"a":1},"id":"\\u0031"}');
});
