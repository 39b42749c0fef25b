import { describe, expect, test } from 'bun:test';
import { codingsIn, refusalOfHead } from '../../../gateway/request/http.ts';

const refusal = (method: string, headers: Record<string, string>) =>
  refusalOfHead({ method, headers: new Headers(headers) });

describe('a head is refused before its body is read', () => {
  test.each([['GET'], ['HEAD'], ['PUT'], ['DELETE'], ['OPTIONS'], ['PATCH'], ['post'], ['TRACE']])(
    '%s',
    (method) => {
      const headers = { 'content-type': 'application/json' };
      expect(refusal(method, headers)).toEqual({ kind: 'not-post', reason: 'Only POST is allowed' });
    },
  );

  test('an upgrade to WebSocket, with the reason', () => {
    expect(refusal('GET', { upgrade: 'websocket', connection: 'Upgrade' })).toEqual({
      kind: 'not-post',
      reason: 'Only POST is allowed; WebSocket is not offered',
    });
  });

  test.each([
    ['text/plain'],
    ['text/json'],
    ['application/jsonp'],
    ['application/json-rpc'],
    ['application/json5'],
    ['application/x-www-form-urlencoded'],
    ['application/json+x'],
    ['x-application/json'],
    ['text/plain, application/json'],
    ['application'],
    ['json'],
    [''],
  ])('the content type %p', (type) => {
    expect(refusal('POST', { 'content-type': type })).toEqual({
      kind: 'not-json',
      reason: 'Content-Type must be application/json',
    });
  });

  test('no content type', () => {
    expect(refusal('POST', {})?.kind).toBe('not-json');
  });

  test.each([['gzip'], ['br'], ['zstd'], ['identity, gzip'], ['x']])(
    'a body that is encoded with %s',
    (encoding) => {
      expect(refusal('POST', { 'content-type': 'application/json', 'content-encoding': encoding })).toEqual({
        kind: 'not-json',
        reason: 'A compressed request body is not accepted',
      });
    },
  );
});

test.each([
  ['application/json'],
  ['application/json; charset=utf-8'],
  ['application/json;charset=UTF-8'],
  ['application/json ; x=y; z="w"'],
  ['APPLICATION/JSON'],
  ['Application/Json; Charset=utf-8'],
  ['application/json;'],
])('the content type %p passes', (type) => {
  expect(refusal('POST', { 'content-type': type })).toBeUndefined();
  expect(refusal('POST', { 'content-type': type, 'content-encoding': 'identity' })).toBeUndefined();
  expect(refusal('POST', { 'content-type': type, upgrade: 'h2c' })).toBeUndefined();
});

test('an Accept-Encoding of more than a kilobyte is not looked through', () => {
  expect(codingsIn(`gzip${' '.repeat(1_020)}`)).toBe('gzip');
  expect(codingsIn(`gzip${' '.repeat(1_021)}`)).toBe('identity');
  expect(codingsIn(`gzip${' ;\t'.repeat(5_000)}`)).toBe('identity');
});

test.each([
  ['', 'identity'],
  ['identity', 'identity'],
  ['gzip', 'gzip'],
  ['GZIP ; q=0.5 , br', 'br, gzip'],
  ['br;q=0, deflate;q=0.001, gzip;q=0.0', 'deflate'],
  ['*', 'zstd, br, gzip, deflate'],
  ['*, gzip;q=0', 'zstd, br, deflate'],
  ['*;q=0', 'identity'],
  ['toString, x-gzip, compress', 'identity'],
  ['gzip\u00e9', 'identity'],
])('of Accept-Encoding %j is asked for upstream: %s (RFC 9110 12.5.3)', (header, codings) => {
  expect(codingsIn(header)).toBe(codings);
  expect(codingsIn(header)).toBe(codings);
});
