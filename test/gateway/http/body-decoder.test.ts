import { describe, expect, test } from 'bun:test';
import { BodyDecoder } from '../../../gateway/http/body-decoder.ts';

/** What a decoder makes of a body, whole and byte by byte; the same, or this fails. */
function decoded(wire: string | Buffer, isRequest: boolean) {
  const bytes = Buffer.from(wire);
  const all = [[bytes], Array.from(bytes, (byte) => Buffer.from([byte]))].map((pieces) => {
    const decoder = new BodyDecoder('chunked', isRequest);
    const body = Buffer.concat(pieces.map((piece) => Buffer.from(decoder.push(Buffer.from(piece)))));
    return decoder.state === 'bad' ? 'bad' : `${decoder.state} ${body.toString('latin1')}`;
  });
  expect(all[0]).toBe(all[1]);
  return all[0];
}

const inChunk = (line: string) => `${line}\r\nhello\r\n0\r\n\r\n`;

describe('the line of a chunk', () => {
  test.each([
    '5',
    '05',
    '000000000005',
    '5;a',
    '5;a=b',
    '5;a="b"',
    '5 ; a = "b;c=\\"d" ;e',
    '5\t;\ta',
    '5;a="\xe9 \t"',
  ])('%j is one of a request and of a response', (line) => {
    expect([decoded(inChunk(line), true), decoded(inChunk(line), false)]).toEqual(['end hello', 'end hello']);
  });

  test.each([
    '5;',
    '5 ',
    '5\t',
    '5; ',
    '5;;',
    '5;a;',
    '5;a=',
    '5;=b',
    '5;a="b',
    '5;a="b"c',
    '5;a b',
    '5;a="\x01"',
    '5;\0',
    '5;a="\0"',
  ])('%j is none of a request, and read past in a response, which goes no further', (line) => {
    expect([decoded(inChunk(line), true), decoded(inChunk(line), false)]).toEqual(['bad', 'end hello']);
  });

  test.each([
    '',
    ' 5',
    '+5',
    '-5',
    '0x5',
    '5 5',
    '5x',
    '5\0',
    '5;a\rb',
    '5\n',
    '5;a\n',
    '5\r',
    '0000000000005',
    'ffffffffffffff',
    `5;${'x'.repeat(1_021)}`,
  ])('%j is none', (line) => {
    expect([decoded(inChunk(line), true), decoded(inChunk(line), false)]).toEqual(['bad', 'bad']);
  });

  test('is as long as it may be, and extensions of a request are as long together, and not a byte longer', () => {
    expect(decoded(inChunk(`5;${'x'.repeat(1_020)}`), false)).toBe('end hello');
    const chunks = (count: number, last: string) =>
      `${`1;${'x'.repeat(999)}\r\na\r\n`.repeat(count)}1${last}\r\na\r\n0\r\n\r\n`;
    expect(decoded(chunks(16, `;${'x'.repeat(383)}`), true)).toBe(`end ${'a'.repeat(17)}`);
    expect(decoded(chunks(16, `;${'x'.repeat(384)}`), true)).toBe('bad');
    expect(decoded(chunks(16, `;${'x'.repeat(384)}`), false)).toBe(`end ${'a'.repeat(17)}`);
  });
});
