import { expect, test } from 'bun:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { SAYING_BYTES_MAX, sayingOf } from '../../../gateway/upstream/response-reader.ts';

const TEXT = '{"jsonrpc":"2.0","error":{"code":-32005,"message":"behind"},"id":1}';
const of = (bytes: Uint8Array, encoding: string | undefined) => {
  const saying = sayingOf({ kind: 'whole', bytes: new Uint8Array(bytes), encoding });
  return saying === undefined ? undefined : Buffer.from(saying).toString();
};

test.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
] as const)('a short answer is read through %s', (encoding, compress) => {
  expect(of(compress(TEXT), encoding)).toBe(TEXT);
});

test('a plain answer is read whatever its length', () => {
  expect(of(Buffer.from(TEXT), undefined)).toBe(TEXT);
  expect(of(Buffer.alloc(60_000, ' '), undefined)?.length).toBe(60_000);
});

test('what becomes long, is broken, or is of an unknown encoding is not read', () => {
  expect(of(gzipSync(Buffer.alloc(SAYING_BYTES_MAX + 1)), 'gzip')).toBeUndefined();
  expect(of(gzipSync(TEXT).subarray(0, 20), 'gzip')).toBeUndefined();
  expect(of(Buffer.from(TEXT), 'snappy')).toBeUndefined();
});
