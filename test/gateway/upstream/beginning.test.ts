import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createBeginning } from '../../../gateway/upstream/response-reader.ts';

/** Whether an answer that has begun so is held, fed in reads that end at `cuts`. */
function isHeld(text: string, cuts: readonly number[] = []): boolean {
  const bytes = Buffer.from(text);
  const beginning = createBeginning();
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  let held = false;
  let from = 0;
  for (const end of ends) {
    held = beginning.push(bytes.subarray(from, end));
    from = end;
  }
  return held;
}

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
const cuts = fc.array(fc.nat(), { maxLength: 6 });
const space = fc.constantFrom('', ' ', '\n\t');

/** Beginnings that tell, in any order of members, with any white space, cut anywhere. */
function everywhere(tellings: readonly string[], held: boolean): void {
  fc.assert(
    fc.property(members, fc.constantFrom(...tellings), space, cuts, (before, telling, between, at) => {
      const text = `${between}{${[...before, telling].join(`${between},${between}`)}`;
      expect([text, isHeld(text, at)]).toEqual([text, held]);
    }),
  );
}

describe('the beginning of an answer', () => {
  test('is held when it is an error or a null, or is about to say so', () => {
    everywhere(
      [
        '"error":{"code":-32005',
        '"error" : {',
        '"error":',
        '"error"',
        '"err',
        '"e',
        '"result":null',
        '"result" : n',
        '"result":null,"x":1',
        '"result":null,"error":{"code":1',
        '"result":',
        '"r',
      ],
      true,
    );
  });

  test('is passed on when it is a result, whatever the result says', () => {
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

  test('is passed on while it is neither', () => {
    everywhere(['"jsonrpc":"2.0"', '"js', '"', '"id":', '"id":"error', '"errors', '"resultx":n'], false);
    for (const text of ['', ' ', '{', '{"']) expect(isHeld(text)).toBe(false);
  });
});
