import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createBlocks, Structure, kernelMemory } from '../../../gateway/json/structure.ts';

type Verdict = { fine: boolean; complete: boolean };

const blocks = createBlocks();

/** Feeds `bytes` in pieces that end at `cuts`. */
function followed(bytes: Buffer, cuts: readonly number[], by = blocks): Verdict {
  const structure = new Structure();
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  let fine = true;
  let from = 0;
  for (const end of ends) {
    fine = structure.push(bytes.subarray(from, end), by) && fine;
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

const row = fc.record({
  key: fc.string({ unit: fc.constantFrom('a', '7', '{', '}', '[', ']', ',', ':', ' ', 'é'), maxLength: 80 }),
  data: fc.string({ unit: fc.constantFrom('A', 'b', '+', '/', '='), maxLength: 400 }),
  numbers: fc.array(fc.double({ noNaN: true }), { maxLength: 6 }),
  nested: fc.constantFrom(null, true, [[[[]]]], [[], [], []], { a: { b: {} } }),
});
const log = fc.string({ unit: fc.constantFrom('"', '\\', 'x', '\n'), maxLength: 12 });
/** Long enough for many blocks; without logs there is no backslash, so that they are passed over. */
const answer = fc
  .tuple(fc.array(row, { minLength: 4, maxLength: 20 }), fc.array(log, { maxLength: 3 }))
  .map(([rows, logs]) => Buffer.from(JSON.stringify({ result: [...rows, logs, ...rows], id: 1 })));
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
  test('a whole value is complete, wherever it is cut', () => {
    fc.assert(
      fc.property(anyAnswer, cuts, (bytes, at) =>
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
      fc.property(anyAnswer, fc.nat(), cuts, (bytes, length, at) => {
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

describe('a structure followed block by block', () => {
  test('is followed so on this machine', () => {
    expect(blocks).not.toBeNull();
  });

  test('passes over what cannot matter', () => {
    const text = `[["${'A'.repeat(3_000)}",${'{"c":[-1.5e+3,true,null]},'.repeat(200)}`;
    const length = kernelMemory.write(text);
    const end = 64 * Math.floor(length / 64);
    const walked = text.slice(0, end);
    const depth = walked.split(/[{[]/).length - walked.split(/[}\]]/).length;
    expect(length).toBe(text.length);
    expect(blocks?.(64, length, 10, -1)).toEqual([end, depth + 8, 0]);
  });

  test.each([
    ['a backslash', '\\'],
    ['what may not stand there', '!'],
    ['brackets that may close the value', ']]'],
  ])('leaves a block with %s to whoever walks byte by byte', (_, odd) => {
    const text = Buffer.from(`[[${'1,'.repeat(150)}${odd}${'1,'.repeat(150)}`);
    const length = text.copy(kernelMemory);
    expect(blocks?.(64, length, 2, 0)).toEqual([256, 2, 0]);
  });

  test('gives the decision of the plain rules, wherever an answer is cut, and when bytes are missing, changed or too many', () => {
    const change = fc.record({ at: fc.nat(), byte: fc.nat(255), drop: fc.nat(3) });
    fc.assert(
      fc.property(answer, fc.array(change, { maxLength: 3 }), cuts, (bytes, changes, at) => {
        let changed = bytes;
        for (const { at: place, byte, drop } of changes) {
          const i = place % (changed.length + 1);
          changed = Buffer.concat([changed.subarray(0, i), Buffer.from([byte]), changed.subarray(i + drop)]);
        }
        expect(followed(changed, at)).toEqual(verdictOf(changed));
        expect(followed(changed, at, null)).toEqual(verdictOf(changed));
      }),
      { numRuns: 500 },
    );
  });

  test('refuses each byte that may not stand outside strings, at every place of a block', () => {
    const text = Buffer.from(`{"a":[${'1,'.repeat(600)}1]}`);
    const wrong: unknown[] = [];
    for (let place = 512; place < 576; place++) {
      for (let byte = 0; byte < 256; byte++) {
        const changed = Buffer.from(text);
        changed[place] = byte;
        if (!Bun.deepEquals(followed(changed, [], blocks), verdictOf(changed))) wrong.push({ place, byte });
      }
    }
    expect(wrong).toEqual([]);
  });

  test('sees the end of the value at every place of a block', () => {
    for (let place = 512; place < 640; place++) {
      const text = `${`{"a":[${'1,'.repeat(600)}`.slice(0, place)}${place % 2 === 0 ? '' : '1'}1]}`;
      expect(followed(Buffer.from(`${text}${' '.repeat(700)}`), [])).toEqual({
        fine: true,
        complete: true,
      });
      expect(followed(Buffer.from(`${text}${' '.repeat(700)}0`), [])).toEqual({
        fine: false,
        complete: false,
      });
    }
  });

  test('counts the backslashes before a quote, wherever in a block they stand', () => {
    const wrong: unknown[] = [];
    for (let place = 0; place < 64; place++) {
      for (let run = 0; run < 70; run++) {
        const text = Buffer.from(`{"a":"${'A'.repeat(512 + place)}${'\\'.repeat(run)}"${'1'.repeat(600)}"}`);
        if (!Bun.deepEquals(followed(text, [], blocks), verdictOf(text))) wrong.push({ place, run });
      }
    }
    expect(wrong).toEqual([]);
  });

  test('sees the end of the value however its brackets wander', () => {
    const wander = fc.array(fc.constantFrom('[', ']', '[1]', '1,', '"]"'), {
      minLength: 200,
      maxLength: 1_500,
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), wander, cuts, (depth, steps, at) => {
        const bytes = Buffer.from('['.repeat(depth) + steps.join(''));
        expect(followed(bytes, at)).toEqual(verdictOf(bytes));
      }),
      { numRuns: 300 },
    );
  });

  test('follows a string of several windows, with an escape at their edges', () => {
    // The first block is walked byte by byte; the string begins behind it.
    const opening = `{"a":[${'1,'.repeat(50)}"`;
    for (const length of [65_535, 65_536, 65_600, 131_072]) {
      for (const end of ['\\"', '\\\\', '\\\\\\"']) {
        for (let shift = -6; shift <= 2; shift++) {
          // What follows could stand outside strings, or end the value.
          for (const rest of ['1', '}']) {
            const text = `${opening}${'A'.repeat(length - opening.length + shift)}${end}${rest.repeat(1_000)}"]}`;
            for (const at of [[], [length]]) {
              expect(followed(Buffer.from(text), at)).toEqual({ fine: true, complete: true });
            }
          }
        }
      }
    }
  });
});
