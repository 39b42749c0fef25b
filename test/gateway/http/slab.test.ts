import { expect, test } from 'bun:test';
import { readFrom } from '../../../gateway/http/slab.ts';

const COPIED_BYTES_MAX = 1_024;
const SLAB_BYTES = 16_384;

/** Bytes that no other read has, and what is read of them from `from` on. */
function read(n: number, length: number, from: number) {
  const bytes = Buffer.alloc(length, `${n}:`);
  const expected = bytes.toString('latin1', from);
  const rest = readFrom(bytes, from);
  // The runtime uses the memory of what was copied again.
  if (length - from <= COPIED_BYTES_MAX) bytes.fill('!');
  return { rest, expected };
}

test('what was read stays as it was, whatever is read or written beside it later', () => {
  const reads = Array.from({ length: 2_000 }, (_, n) => read(n, 40 + ((n * 7_919) % 1_500), n % 41));
  for (const [n, { rest, expected }] of reads.entries()) {
    expect(rest.toString('latin1')).toBe(expected);
    if (n % 3 === 0) rest.fill('?');
  }
  for (const [n, { rest, expected }] of reads.entries())
    expect(rest.toString('latin1')).toBe(n % 3 === 0 ? '?'.repeat(expected.length) : expected);
});

test('who keeps a few bytes keeps one slab at most, and many bytes are not copied', () => {
  const few = readFrom(Buffer.alloc(COPIED_BYTES_MAX + 100, 'x'), 100);
  expect(few.buffer.byteLength).toBe(SLAB_BYTES);
  const much = Buffer.alloc(COPIED_BYTES_MAX + 101, 'x');
  expect(readFrom(much, 100).buffer).toBe(much.buffer);
  expect(readFrom(Buffer.from('GET / HTTP/1.1'), 14)).toHaveLength(0);
});
