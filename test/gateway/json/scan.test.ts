import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { afterSpace, afterValue, DEEP, DEPTH_MAX } from '../../../gateway/json/scan.ts';
import { jsonText } from './json-text.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe('afterValue', () => {
  test(`takes ${DEPTH_MAX} levels of arrays and objects, and not one more`, () => {
    const arrays = (levels: number) => bytesOf('['.repeat(levels) + ']'.repeat(levels));
    const objects = (levels: number) => bytesOf('{"a":'.repeat(levels) + '0' + '}'.repeat(levels));
    expect(afterValue(arrays(64), 0)).toBe(128);
    expect(afterValue(arrays(65), 0)).toBe(DEEP);
    expect(afterValue(objects(64), 0)).toBe(64 * 6 + 1);
    expect(afterValue(objects(65), 0)).toBe(DEEP);
  });

  test('ends where any JSON value ends, whatever follows', () => {
    fc.assert(
      fc.property(jsonText, fc.constantFrom('', ' ', ',', ']', '}', '"'), (text, after) => {
        expect(afterValue(bytesOf(text + after), 0)).toBe(bytesOf(text).length);
      }),
      { numRuns: 500 },
    );
  });
});

test('white space is the four kinds of JSON and no other', () => {
  expect(afterSpace(bytesOf(' \t\r\n7'), 0)).toBe(4);
  for (const other of ['\v', '\f', '\0', '\u00a0', '\ufeff', '\u2028'])
    expect(afterSpace(bytesOf(other), 0)).toBe(0);
});
