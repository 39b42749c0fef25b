import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { Structure } from '../../../gateway/json/structure.ts';

type Verdict = { fine: boolean; complete: boolean };

/** Feeds `bytes` in pieces that end at `cuts`. */
function followed(bytes: Buffer, cuts: readonly number[]): Verdict {
  const structure = new Structure();
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  let fine = true;
  let from = 0;
  for (const end of ends) {
    fine = structure.push(bytes.subarray(from, end)) && fine;
    from = end;
  }
  return { fine, complete: structure.isComplete };
}

/** The rules of a structure, one byte after the other and as plainly as they can be said. */
function verdictOf(bytes: Buffer): Verdict {
  let depth = 0;
  let begun = false;
  let inString = false;
  let escaped = false;
  for (const char of bytes.toString('latin1')) {
    if (inString) {
      if (char === '"' && !escaped) inString = false;
      escaped = char === '\\' && !escaped;
    } else if (' \t\r\n'.includes(char)) continue;
    else if ('{['.includes(char) && (depth > 0 || !begun)) {
      depth++;
      begun = true;
    } else if (depth > 0 && '}]'.includes(char)) depth--;
    else if (depth > 0 && char === '"') inString = true;
    else if (depth === 0 || !',:+-.0123456789eEtruefalsn'.includes(char))
      return { fine: false, complete: false };
  }
  return { fine: true, complete: begun && depth === 0 };
}

const cuts = fc.array(fc.nat(), { maxLength: 5 });
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
const anyAnswer = anyJson.map((value) =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', result: value, id: 1 })),
);

describe('the structure of an answer', () => {
  test('is judged by the plain rules, wherever it is cut, and when bytes are missing, changed or too many', () => {
    const change = fc.record({ at: fc.nat(), byte: fc.nat(255), drop: fc.nat(3) });
    fc.assert(
      fc.property(anyAnswer, fc.array(change, { maxLength: 3 }), cuts, (bytes, changes, at) => {
        let changed = bytes;
        for (const { at: place, byte, drop } of changes) {
          const i = place % (changed.length + 1);
          changed = Buffer.concat([changed.subarray(0, i), Buffer.from([byte]), changed.subarray(i + drop)]);
        }
        expect(followed(changed, at)).toEqual(verdictOf(changed));
      }),
      { numRuns: 500 },
    );
  });

  test('counts the members "id" where it is least deep, wherever it is cut, whatever strings say', () => {
    const key = fc.constantFrom('id', 'i', 'idd', '"id"', '\\', 'id\\"');
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        key,
        fc.integer(),
        fc.array(tie('value')),
        fc.dictionary(key, tie('value')),
      ),
    }));
    const depthsOf = (json: unknown, depth: number): number[] => {
      if (typeof json !== 'object' || json === null) return [];
      const own = Array.isArray(json) || !('id' in json) ? [] : [depth];
      return [...own, ...Object.values(json).flatMap((each) => depthsOf(each, depth + 1))];
    };
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, ' ', '\n\t'), cuts, (json, gap, at) => {
        const bytes = Buffer.from(JSON.stringify([json], null, gap).replaceAll('":', '" :'));
        const depths = depthsOf([json], 1);
        const idDepth = Math.min(...depths);
        const expected = { idDepth, ids: depths.filter((depth) => depth === idDepth).length };
        const structure = new Structure();
        let from = 0;
        for (const end of [...at.map((cut) => cut % bytes.length), bytes.length].toSorted((a, b) => a - b)) {
          structure.push(bytes.subarray(from, end));
          from = end;
        }
        expect({ idDepth: structure.idDepth, ids: structure.ids }).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  test('A18 a string of backslashes that goes on past a piece is walked once', () => {
    for (const odd of [0, 1]) {
      const bytes = Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(131_072 + odd, '\\')]);
      const structure = new Structure();
      const began = performance.now();
      expect(structure.push(bytes)).toBe(true);
      expect(performance.now() - began).toBeLessThan(500);
      structure.push(Buffer.from(odd === 1 ? '""}' : '"}'));
      expect(structure.isComplete).toBe(true);
    }
  });

  test('may hold each byte outside strings that JSON has there, and no other', () => {
    for (let byte = 0; byte < 256; byte++) {
      const text = Buffer.from('{"a":[1,2]}');
      text[8] = byte;
      expect([byte, followed(text, [])]).toEqual([byte, verdictOf(text)]);
    }
  });
});
