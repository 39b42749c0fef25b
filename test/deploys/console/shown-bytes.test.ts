import { describe, expect, test } from 'bun:test';
import { shownBytes } from '../../../deploys/console/pages/account/attempt.tsx';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('the bytes of an answer', () => {
  test.each(['', 'plain\ttext\r\n', 'schön 🦀'])('are text where they are: %j', (text) => {
    expect(shownBytes(bytes(text), true)).toEqual({ kind: 'text', text });
  });

  test('that were cut in the middle of a character are text up to it, and only if they were cut', () => {
    const cut = bytes('ok 🦀').subarray(0, -1);
    expect(shownBytes(cut, false)).toEqual({ kind: 'text', text: 'ok ' });
    expect(shownBytes(cut, true).kind).toBe('binary');
  });

  test.each([
    ['a control character', bytes('a\u0000b')],
    ['an escape sequence', bytes('\u001b[31mred')],
    ['no UTF-8', Uint8Array.of(0xff, 0xfe, 0x00)],
  ])('with %s are binary, in hex', (_, given) => {
    const { kind, text } = shownBytes(given, true);
    expect(kind).toBe('binary');
    expect(text.replace(/^0000 {2}/, '').split(' ')).toEqual(
      [...given].map((byte) => byte.toString(16).padStart(2, '0')),
    );
  });

  test('that are many are shown from their beginning', () => {
    const { text } = shownBytes(new Uint8Array(16_384).fill(0xff), true);
    expect(text.split('\n')).toHaveLength(16);
  });
});
