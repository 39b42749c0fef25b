import { expect, test } from 'bun:test';
import { codingsIn } from '../../../gateway/listener/http.ts';

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
