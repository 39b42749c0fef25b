import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'bun:test';
import type { Reply } from '../../../gateway/upstream/forward.ts';
import { isFinal, outcomeOf } from '../../../gateway/history/request.ts';

const NULL = '{"jsonrpc":"2.0","result":null,"id":7}\n';
const failed = (code: number, message = 'x') =>
  `{"jsonrpc":"2.0","error":{"code":${code},"message":"${message}"},"id":7}\n`;
const whole = (body: string | Uint8Array, encoding?: string): Reply => ({
  kind: 'whole',
  bytes: new Uint8Array(typeof body === 'string' ? new TextEncoder().encode(body) : body),
  encoding,
});

test.each([
  ['a result', '{"jsonrpc":"2.0","result":{"a":null},"id":7}', 'found'],
  ['a null', NULL, 'null'],
  ['a null with the id first', '{"id":7,"result":null,"jsonrpc":"2.0"}', 'null'],
  ['an id of null', '{"jsonrpc":"2.0","result":1,"id":null}', 'found'],
  ['-32001', failed(-32001), 'lacking'],
  ['-32009', failed(-32009), 'lacking'],
  ['-32014', failed(-32014), 'lacking'],
  ['-32015', failed(-32015), 'refused'],
  ['-32602', failed(-32602, 'Invalid param'), 'refused'],
  ['-32602 for a BigTable', failed(-32602, 'BigTable query failed (maybe timeout)'), 'lacking'],
] as const)('an answer is judged by what it says: %s', (_, text, kind) =>
  expect(outcomeOf(whole(text)).kind).toBe(kind),
);

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
] as const)('a null compressed with %s is one too', (encoding, compress) => {
  expect(outcomeOf(whole(compress(NULL), encoding)).kind).toBe('null');
  expect(outcomeOf(whole(compress(failed(-32004)), encoding))).toEqual({ kind: 'lacking', code: -32004 });
});

test('what is long, or compressed in a way nobody knows, is found', () => {
  const long = `{"result":"${'x'.repeat(8_192)}"}`;
  expect(outcomeOf(whole(long)).kind).toBe('found');
  expect(outcomeOf(whole(gzipSync(long), 'gzip')).kind).toBe('found');
  expect(outcomeOf(whole(NULL, 'compress')).kind).toBe('found');
  expect(outcomeOf(whole(NULL, 'gzip')).kind).toBe('found');
});

test('a stream is found without being read', () => {
  const body = {
    pipe: () => {
      throw new Error('read');
    },
    cancel: () => undefined,
  };
  expect(outcomeOf({ kind: 'stream', body, encoding: undefined }).kind).toBe('found');
});

test('the other tier is asked after a null, a lack or silence, and after nothing else', () => {
  const replies: Reply[] = [
    { kind: 'no-backend' },
    whole(NULL),
    whole(failed(-32001)),
    whole(failed(-32015)),
  ];
  expect(replies.map((reply) => isFinal(reply))).toEqual([false, false, false, true]);
  expect(isFinal({ kind: 'caller-left' })).toBe(true);
});
