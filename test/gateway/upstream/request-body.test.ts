import { expect, test } from 'bun:test';
import { methodMember, requestBytes, writeRequest } from '../../../gateway/request/envelope.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);

function bodyOf(id: string, params: string | undefined, name = 'getSlot') {
  const call = {
    kind: 'call',
    id: bytesOf(id),
    method: name,
    params: params === undefined ? undefined : bytesOf(params),
  } as const;
  const member = methodMember(name);
  const bytes = Buffer.alloc(requestBytes(call, member));
  expect(writeRequest(call, member, bytes, 0)).toBe(bytes.length);
  return new TextDecoder().decode(bytes);
}

test('the id and the params stand in it byte for byte', () => {
  expect(
    bodyOf('18446744073709551615', '[ 1.0,1e2, 18446744073709551615,"\\u0041é",{"b":1,"a":2,"b":3} ]'),
  ).toBe(
    '{"jsonrpc":"2.0","id":18446744073709551615,"method":"getSlot","params":[ 1.0,1e2, 18446744073709551615,"\\u0041é",{"b":1,"a":2,"b":3} ]}',
  );
});

test('params that were not sent are not sent on, and null is', () => {
  expect(bodyOf('null', undefined)).toBe('{"jsonrpc":"2.0","id":null,"method":"getSlot"}');
  expect(bodyOf('"a"', 'null')).toBe('{"jsonrpc":"2.0","id":"a","method":"getSlot","params":null}');
});

test('a method with quotes and controls cannot leave its string', () => {
  const text = bodyOf('1', '[]', 'a","id":2,"x":"\n');
  expect(JSON.parse(text)).toEqual({ jsonrpc: '2.0', id: 1, method: 'a","id":2,"x":"\n', params: [] });
});
