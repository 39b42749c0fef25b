import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { afterValue } from '../../../gateway/json/scan.ts';
import { jsonText, mutated } from './json-text.ts';

const after = (text: string | Uint8Array) => afterValue(Buffer.from(text), 0, 65_536);

test('any JSON value ends where it ends, whatever follows', () => {
  fc.assert(
    fc.property(jsonText, fc.constantFrom('', ' ', ',', ']', '}', '"'), (text, more) => {
      expect(after(text + more)).toBe(Buffer.byteLength(text));
    }),
    { numRuns: 500 },
  );
});

test('what a JSON parser refuses is refused, and what it takes is taken', () => {
  fc.assert(
    fc.property(mutated(jsonText), (bytes) => {
      const end = after(bytes);
      const isWhole = end > 0 && Buffer.from(bytes.subarray(end)).toString('latin1').trim() === '';
      // Byte for byte: characters of several bytes are no matter of the grammar.
      const text = Buffer.from(bytes).toString('latin1');
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      // A NBSP is white space for trim, and not for JSON.
      if (!/\u00a0\s*$/.test(text)) expect([text, isWhole]).toEqual([text, isJson]);
    }),
    { numRuns: 3_000 },
  );
});

test('65,536 levels of arrays and objects are taken in a moment, and not one more', () => {
  const arrays = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  expect(after(arrays(65_536))).toBe(131_072);
  expect(after(arrays(65_537))).toBeLessThan(0);
  const objects = `${'{"a":'.repeat(10_000)}0${'}'.repeat(10_000)}`;
  expect(after(objects)).toBe(objects.length);
  expect(after(objects.slice(0, -1))).toBeLessThan(0);
  expect(after(objects.slice(0, -1) + ']')).toBeLessThan(0);
});
