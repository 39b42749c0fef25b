import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  afterName,
  afterSpace,
  afterString,
  afterValue,
  BAD,
  DEEP,
  DEPTH_MAX,
} from '../../../gateway/json/scan.ts';
import { jsonText } from './json-text.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);
/** The words of a text. */
const words = (text: string) => text.split(/[ \n]+/);

describe('afterValue', () => {
  test.each([
    ...words(`0 -0 7 -12.50 1e9 1E+9 1.0e-9 true false null "" "a" "\\"\\\\\\/\\b\\f\\n\\r\\t" "\\u00e9\\uD83D\\udE00"
      "\\ud800" "\u007f\u2028é🙂" [] {} [[],{}] [1,[2,{"a":[3]}],"]"] {"a":1,"a":2} {"":{"":""}}`),
    '[ ]',
    '{ }',
    ' \t\r\n[ 1 , 2 ] ',
  ])('ends after the whole value of %p and leaves what follows', (text) => {
    const end = bytesOf(text.trimEnd()).length;
    expect(afterValue(bytesOf(text), 0)).toBe(end);
    expect(afterValue(bytesOf(`${text},]}`), 0)).toBe(end);
  });

  test.each([
    ...words(`- +1 .5 1. 1.e2 1e 1e+ --1 Infinity NaN nul nulL tru True fals falsy undefined 'a' " "a "\\" "\\x41"
      "\\u12" "\\u12g4" "\\u" "\\ "\0" "\x1f" "\\u123" "\\u123g" [ [1 [1, [1,] [,1] [1} { {"a" {"a": {"a":}
      {"a":1 {"a":1, {"a":1,} {,"a":1} {a:1} {1:1} {"a"::1} {"a":1] [[] ] } , : /**/1`),
    '',
    ' ',
    '"\n"',
    '"\t"',
    '[1 2]',
    '{"a" 1}',
    '{"a":1 "b":2}',
    '\ufeff1',
    '\v1',
    '\u00a01',
  ])('tells that %p is not JSON', (text) => {
    expect(afterValue(bytesOf(text), 0)).toBe(BAD);
  });

  test.each([
    ['01', 1],
    ['-01', 2],
    ['0x1', 1],
    ['1_0', 1],
    ['truee', 4],
    ['1f', 1],
    ['""""', 2],
  ])('ends in %p where the value does, so that its surroundings refuse the rest', (text, end) => {
    expect(afterValue(bytesOf(text), 0)).toBe(end);
    expect(afterValue(bytesOf(`[${text}]`), 0)).toBe(BAD);
  });

  test(`takes ${DEPTH_MAX} levels of arrays and objects, and not one more`, () => {
    const arrays = (levels: number) => bytesOf('['.repeat(levels) + ']'.repeat(levels));
    const objects = (levels: number) => bytesOf('{"a":'.repeat(levels) + '0' + '}'.repeat(levels));
    expect(afterValue(arrays(64), 0)).toBe(128);
    expect(afterValue(arrays(65), 0)).toBe(DEEP);
    expect(afterValue(objects(64), 0)).toBe(64 * 6 + 1);
    expect(afterValue(objects(65), 0)).toBe(DEEP);
  });

  test('counts what is open around the value, and not what stands beside it', () => {
    const text = bytesOf('[[],[[]],{"a":[]}]'); // three levels
    expect(afterValue(text, 0, 61)).toBe(text.length);
    expect(afterValue(text, 0, 62)).toBe(DEEP);
    expect(afterValue(bytesOf(`[${'[],'.repeat(1_000)}[]]`), 0, 62)).toBeGreaterThan(0);
    expect(afterValue(bytesOf('7'), 0, 64)).toBe(1);
    expect(afterValue(bytesOf('[]'), 0, 64)).toBe(DEEP);
  });

  test('a megabyte of opening brackets is refused at the bound, without reading on', () => {
    expect(afterValue(new Uint8Array(1 << 20).fill(0x5b), 0)).toBe(DEEP);
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

describe('the parts', () => {
  test('afterSpace passes the four kinds of white space of JSON and no other', () => {
    expect(afterSpace(bytesOf(' \t\r\n7'), 0)).toBe(4);
    expect(afterSpace(bytesOf(' '), 0)).toBe(1);
    expect(afterSpace(bytesOf(''), 0)).toBe(0);
    for (const other of ['\v', '\f', '\0', '\u00a0', '\ufeff', '\u2028'])
      expect(afterSpace(bytesOf(other), 0)).toBe(0);
  });

  test('afterString ends after the closing quote, which is not an escaped one', () => {
    expect(afterString(bytesOf('"a\\"b" "c"'), 0)).toBe(6);
    expect(afterString(bytesOf('"a\\\\" "c"'), 0)).toBe(5);
    expect(afterString(bytesOf('x"a"'), 1)).toBe(4);
  });

  test.each([
    ['"a":1', 4],
    ['"a" \n: 1', 6],
    ['"a"', BAD],
    ['a:1', BAD],
    ['"a":', 4],
    ['', BAD],
  ])('afterName of %p is %p', (text, end) => {
    expect(afterName(bytesOf(text), 0)).toBe(end);
  });
});
