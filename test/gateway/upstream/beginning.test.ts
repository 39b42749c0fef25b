import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { mayBeFailure } from '../../../gateway/upstream/response-reader.ts';

const OTHERS = [
  '"jsonrpc":"2.0"',
  '"id":1',
  '"id":"a\\"}"',
  '"id":null',
  '"x":{"error":1,"result":2}',
  '"y":["error","result",{}]',
  '"error":null',
  '"z":"error"',
  '"err":1',
  '"results":[]',
  '"errors":[]',
  '"e\\u0072ror":{}',
];
const members = fc.array(fc.constantFrom(...OTHERS), { maxLength: 4 });
const space = fc.constantFrom('', ' ', '\n\t');

/** Whether answers that begin so may be failures, whatever members come first, with any white space. */
function everywhere(beginnings: readonly string[], isHeld: boolean): void {
  fc.assert(
    fc.property(members, fc.constantFrom(...beginnings), space, (before, telling, between) => {
      const text = `${between}{${between}${[...before, telling].join(`${between},${between}`)}`;
      expect([text, mayBeFailure(Buffer.from(text))]).toEqual([text, isHeld]);
    }),
  );
}

describe('an answer by its beginning', () => {
  test('is a failure when it is an error or a null', () => {
    everywhere(
      [
        '"error":{"code":-32005',
        '"error" : {',
        '"result":null',
        '"result" : n',
        '"result":null,"x":1',
        '"result":null,"error":{"code":1',
      ],
      true,
    );
  });

  test('is about to tell when the name of a member that tells has begun', () => {
    everywhere(['"error": ', '"error"', '"err', '"e', '"result":', '"result" ', '"r'], true);
  });

  test('is a result, whatever the result says', () => {
    everywhere(
      [
        '"result":1',
        '"result":"',
        '"result":"null',
        '"result":{"error":{',
        '"result": [null',
        '"result":true,"error":{"code":1',
        '"result":0,"result":null',
      ],
      false,
    );
  });

  test('is not known while it says neither', () => {
    everywhere(['"jsonrpc":"2.0"', '"js', '"', '"id":', '"id":"error', '"errors', '"resultx":n'], false);
    for (const text of ['', ' ', '{', '{"', '{}']) expect(mayBeFailure(Buffer.from(text))).toBe(false);
  });
});
