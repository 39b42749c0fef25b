import { expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  arrayOf,
  elementsOf,
  memberOf,
  membersOf,
  numberIn,
  valuesOf,
} from '../../../gateway/json/slices.ts';
import { isNull, textIn } from '../../../gateway/json/scan.ts';
import { jsonText, objectText } from './json-text.ts';

const bytesOf = (text: string) => Buffer.from(text);
const textOf = (bytes: Uint8Array | undefined) =>
  bytes === undefined ? undefined : new TextDecoder().decode(bytes);

test('the values of any array are its own bytes, in order', () => {
  fc.assert(
    fc.property(fc.array(jsonText, { maxLength: 5 }), fc.constantFrom('', ' ', '\n'), (values, gap) => {
      const array = bytesOf(`${gap}[${gap}${values.join(`${gap},${gap}`)}${gap}]`);
      expect(elementsOf(array)?.map(textOf)).toEqual(values);
    }),
  );
});

test('the members of any object are its own bytes, in order', () => {
  const members = fc.array(fc.record({ name: fc.constantFrom('"a"', '"\\u0062"', '"é"'), value: jsonText }), {
    maxLength: 5,
  });
  fc.assert(
    fc.property(members, fc.constantFrom('', ' '), (list, gap) => {
      const found = membersOf(bytesOf(objectText(list, gap)));
      expect(found?.map(({ name, value }) => [name, textOf(value)])).toEqual(
        list.map(({ name, value }) => [JSON.parse(name), value]),
      );
    }),
  );
});

test('the values of a name are those of its members, however it is escaped', () => {
  const names = fc.constantFrom(
    '"a"',
    '"\\u0061"',
    '"aa"',
    '"\\""',
    '"\\u0022"',
    '"\\n"',
    '"é"',
    '"\\u00e9"',
    '""',
  );
  const members = fc.array(fc.record({ name: names, value: jsonText }), { maxLength: 8 });
  fc.assert(
    fc.property(members, fc.constantFrom('a', '"', '\n', 'é', ''), (list, wanted) => {
      const found = valuesOf(bytesOf(objectText(list, ' ')), wanted);
      const expected = list.filter(({ name }) => JSON.parse(name) === wanted);
      expect(found.map(textOf)).toEqual(expected.map(({ value }) => value));
    }),
  );
  for (const none of ['[{"a":1}]', '{"a":1', '"a"', '']) expect(valuesOf(bytesOf(none), 'a')).toEqual([]);
});

test('of a member that stands twice the last one counts', () => {
  expect(textOf(memberOf(bytesOf('{"a":1,"\\u0061":2,"b":3}'), 'a'))).toBe('2');
});

test.each([
  ['0', 0],
  ['500000', 500_000],
  ['999999999999999', 999_999_999_999_999],
  ['1000000000000000', undefined],
  ['-1', undefined],
  ['1.0', undefined],
  ['1e2', undefined],
  ['"1"', undefined],
  ['null', undefined],
])('%s is the number %p', (text, number) => expect(numberIn(bytesOf(text))).toBe(number));

test.each([
  ['"a\\u0062\\/"', 'ab/'],
  ['""', ''],
  ['null', undefined],
  ['7', undefined],
])('%s is the text %p', (text, value) => expect(textIn(bytesOf(text))).toBe(value));

test('null is told from what begins or ends like it', () => {
  const nulls = ['null', 'true', '"null"', 'nul'].map((text) => isNull(bytesOf(text)));
  expect(nulls).toEqual([true, false, false, false]);
});

test('slices are put together with commas between them and nothing else', () => {
  const three = ['1e0', '"\\u0061"', '18446744073709551615'].map(bytesOf);
  expect(textOf(arrayOf(three))).toBe('[1e0,"\\u0061",18446744073709551615]');
  expect(textOf(arrayOf([]))).toBe('[]');
});
