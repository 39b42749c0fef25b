import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createStructure } from '../../../gateway/json/structure.ts';

/** Feeds `text` in pieces that end at `cuts`. */
function followed(bytes: Buffer, cuts: readonly number[]) {
  const structure = createStructure();
  let fine = true;
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  let from = 0;
  for (const end of ends) {
    fine = structure.push(bytes.subarray(from, end)) && fine;
    from = end;
  }
  return { fine, complete: structure.isComplete() };
}

const nasty = fc.constantFrom(
  '\\',
  '\\\\',
  '"',
  '\\"',
  '{',
  '}',
  '[',
  ']',
  ',',
  'é',
  '😀',
  'a',
  '\\u005c',
  '\n',
);
const anyJson = fc.oneof(
  fc.jsonValue(),
  fc.array(fc.array(nasty).map((parts) => parts.join(''))),
  fc.dictionary(
    fc.array(nasty).map((parts) => parts.join('')),
    fc.jsonValue(),
  ),
);
const answer = anyJson.map((value) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', result: value, id: 1 })));
const cuts = fc.array(fc.nat(), { maxLength: 8 });

describe('the structure of an answer', () => {
  test('a whole value is complete, wherever it is cut', () => {
    fc.assert(
      fc.property(answer, cuts, (bytes, at) =>
        expect(followed(bytes, at)).toEqual({ fine: true, complete: true }),
      ),
    );
  });

  test('at every single cut point of a value full of quotes and backslashes', () => {
    const bytes = Buffer.from(
      '{"a\\\\":["\\"","\\\\\\"",{"b":"\\\\"}],"c":-1.5e+10,"d":[true,false,null]}\n',
    );
    for (let cut = 0; cut <= bytes.length; cut++) {
      for (let next = cut; next <= bytes.length; next++) {
        expect(followed(bytes, [cut, next])).toEqual({ fine: true, complete: true });
      }
    }
  });

  test('a value that lacks its end is never complete', () => {
    fc.assert(
      fc.property(answer, fc.nat(), cuts, (bytes, length, at) => {
        const short = bytes.subarray(0, length % bytes.length);
        expect(followed(short, at).complete).toBe(false);
      }),
    );
  });

  test.each(['', ' ', '{', '{"a":1', '{"a":"', '{"a":"}', '{"a":"\\"}', '[[1]', '{"a":{}'])(
    '%p is not complete',
    (text) => {
      expect(followed(Buffer.from(text), []).complete).toBe(false);
    },
  );

  test.each([
    '{}x',
    '{}{}',
    '{} {',
    '}',
    ']',
    '1',
    '"a"',
    'null',
    '<html>',
    '{"a":<b>}',
    '{}\0',
    '{"a":1}]',
    'upstream error',
  ])('%p cannot be an answer', (text) => {
    expect(followed(Buffer.from(text), [1, 3])).toEqual({ fine: false, complete: false });
  });

  test('white space before and after is allowed', () => {
    expect(followed(Buffer.from(' \r\n\t{ } \n'), [2])).toEqual({ fine: true, complete: true });
  });
});
