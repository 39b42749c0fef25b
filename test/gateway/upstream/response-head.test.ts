import { describe, expect, test } from 'bun:test';
import { HEAD_BYTES_MAX, readHead } from '../../../gateway/upstream/http-parser.ts';

const FINAL = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n';
const HINT = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
const readOf = (text: string, passedBytes?: number) => readHead(Buffer.from(text), passedBytes);

describe('interim heads', () => {
  test('are passed over, and the body begins behind the last head', () => {
    const read = readOf(`${HINT}${HINT}${FINAL}{}`);
    expect(read).toMatchObject({ kind: 'head', head: { status: 200 }, end: 2 * HINT.length + FINAL.length });
  });

  test('need not be kept: the head under way begins behind them', () => {
    expect(readOf(`${HINT}${HINT}HTTP/1`)).toEqual({ kind: 'more', from: 2 * HINT.length });
    expect(readOf('HTTP/1')).toEqual({ kind: 'more', from: 0 });
  });

  test('may be as long together as a head, and not a byte longer, however they come', () => {
    const left = HEAD_BYTES_MAX - HINT.length;
    expect(readOf(HINT, left)).toEqual({ kind: 'more', from: HINT.length });
    expect(readOf(HINT, left + 1).kind).toBe('bad');
    expect(readOf(HINT.repeat(HEAD_BYTES_MAX / HINT.length + 1)).kind).toBe('bad');
  });
});
