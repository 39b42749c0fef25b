import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { afterSpace, afterValue, DEEP, DEPTH_MAX } from '../../../gateway/json/scan.ts';
import { jsonText, mutated } from './json-text.ts';

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

  test('takes of bytes near JSON what a parser takes', () => {
    fc.assert(
      fc.property(mutated(jsonText), (bytes) => {
        const end = afterValue(bytes, 0);
        // Byte for byte: characters of several bytes are no matter of the grammar.
        const text = Buffer.from(bytes).toString('latin1');
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        expect([text, end > 0 && afterSpace(bytes, end) === bytes.length]).toEqual([text, isJson]);
      }),
      { numRuns: 3_000 },
    );
  });

  test('takes as many levels as it is told', () => {
    const arrays = (levels: number) => bytesOf('['.repeat(levels) + ']'.repeat(levels));
    expect(afterValue(arrays(30_000), 0, 30_000)).toBe(60_000);
    expect(afterValue(arrays(30_001), 0, 30_000)).toBe(DEEP);
    const objects = `${'{"a":'.repeat(10_000)}0${'}'.repeat(10_000)}`;
    expect(afterValue(bytesOf(objects), 0, 65_536)).toBe(objects.length);
    expect(afterValue(bytesOf(`${objects.slice(0, -1)}]`), 0, 65_536)).toBeLessThan(0);
    // Beyond what the bits of two words hold, what was opened is still closed by its own.
    const mixed = '[{"a":'.repeat(5_000);
    expect(afterValue(bytesOf(`${mixed}0${'}]'.repeat(5_000)}`), 0, 65_536)).toBe(6 * 5_000 + 1 + 10_000);
    expect(
      afterValue(bytesOf(`${mixed}0${'}]'.repeat(2_500)}]}${'}]'.repeat(2_499)}`), 0, 65_536),
    ).toBeLessThan(0);
  });
});

test('white space is the four kinds of JSON and no other', () => {
  expect(afterSpace(bytesOf(' \t\r\n7'), 0)).toBe(4);
  for (const other of ['\v', '\f', '\0', '\u00a0', '\ufeff', '\u2028'])
    expect(afterSpace(bytesOf(other), 0)).toBe(0);
});
