import { describe, expect, test } from 'bun:test';
import { readHead } from '../../../gateway/http/response-head.ts';

const FINAL = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n';
const HEAD_BYTES_MAX = 32_768;
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

test('a change of protocol that was not requested is no reply, also behind interim heads', () => {
  const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n';
  for (const text of [SWITCH, `${SWITCH}${FINAL}{}`, `${HINT}${SWITCH}${FINAL}{}`])
    expect(readOf(text).kind).toBe('bad');
});

const small = (line: string) =>
  Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${line}\r\ncontent-length: 2\r\n\r\n{}`,
    'latin1',
  );

describe('F6 a head in which two readers could see different fields is refused', () => {
  test.each([
    ['a NUL', 'x: \0'],
    ['a line feed alone', 'x: a\ntransfer-encoding: chunked'],
    ['a carriage return alone', 'x: a\rcontent-length: 1'],
    ['a space that is none around a length', 'content-length: \xa02'],
    ['a line without a colon', 'no colon'],
    ['a line without a name', ': x'],
    ['a NUL in a name', 'x\0y: z'],
    ['a length that is not digits', 'content-length: +2'],
    ['a length in another base', 'content-length: 0x2'],
    ['a length without digits', 'content-length:'],
    ['a length of 16 digits', 'content-length: 0000000000000002'],
  ])('%s', (_, line) => {
    expect(readHead(small(line)).kind).toBe('bad');
  });

  test.each([
    ['a status below 100', 'HTTP/1.1 099 x\r\ncontent-length: 2\r\n\r\n{}'],
    ['another protocol', 'HTTP/2 200 OK\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['something before the status line', ' HTTP/1.1 200 OK\r\n\r\n'],
    ['a length in other digits', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 02\r\n\r\n{}'],
    ['a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'],
  ])('%s', (_, text) => expect(readOf(text).kind).toBe('bad'));
});

test.each([
  ['Content-Type:application/json; charset=utf-8\r\nCONTENT-LENGTH:\t2', true, undefined],
  ['content-type: application/problem+json\r\ncontent-length: 2', true, undefined],
  ['content-type: APPLICATION/JSON-RPC\r\ncontent-length: 2', true, undefined],
  ['content-type: text/html\r\ncontent-length: 2', false, undefined],
  [
    'content-type: text/plain\r\ncontent-length: 2\r\ncontent-type: a/json\r\nContent-Length: 2',
    true,
    undefined,
  ],
  ['content-length: 2\r\nContent-Length: 2\r\ncontent-encoding: gzip \t\r\nx-empty:', false, 'gzip'],
  ['x: \x01\x80\r\ncontent-length: 2\r\nContent-Encoding:  ', false, ''],
])('the fields of %j are known in any case, without the space around them', (lines, isJson, encoding) => {
  const head = { status: 200, isJson, encoding, framing: 2, reusable: true };
  expect(readOf(`HTTP/1.1 200\r\n${lines}\r\n\r\n{}`)).toMatchObject({ kind: 'head', head });
});

test('F6 a head is as long as it may be wherever it is split, and not a byte longer', () => {
  const longOf = (bytes: number) =>
    small(`x: ${'a'.repeat(bytes - (small('x: ').length - '\r\n\r\n{}'.length))}`);
  const [longest, tooLong] = [longOf(HEAD_BYTES_MAX), longOf(HEAD_BYTES_MAX + 1)];
  for (let cut = 3; cut <= 5; cut++) expect(readHead(longest.subarray(0, -cut)).kind).toBe('more');
  expect([readHead(longest).kind, readHead(tooLong).kind]).toEqual(['head', 'bad']);
});
