import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { AccountLines } from '../../../gateway/respond/ndjson.ts';

/** Feeds an answer in pieces that end at `cuts`; gives its lines and the last one, or what it broke with. */
function linesOf(answer: string, cuts: readonly number[] = []) {
  const bytes = Buffer.from(answer);
  const lines = new AccountLines();
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  let text = Buffer.alloc(0);
  let from = 0;
  for (const end of ends) {
    const out = lines.push(bytes.subarray(from, end));
    if (out === undefined) return { text: text.toString(), last: 'broken', found: lines.hasArray };
    text = Buffer.concat([text, out]);
    from = end;
  }
  return { text: text.toString(), last: lines.last()?.toString(), found: lines.hasArray };
}

const withContext = (accounts: string, slot = '18446744073709551615') =>
  `{"jsonrpc":"2.0","result":{"context":{"apiVersion":"2.0","slot":${slot}},"value":${accounts}},"id":1}\n`;
const EXACT = '{"pubkey":"a\\/\\u00e9é😀","account":{"rentEpoch":18446744073709551615,"x":[1.0,1e400,-0]}}';

const nasty = fc
  .array(
    fc.constantFrom('\\', '"', '{', '}', '[', ']', ',', ':', 'é', '😀', 'a', '\n', '\r', 'result', 'value'),
  )
  .map((parts) => parts.join(''));
const element = fc.oneof(
  fc.jsonValue(),
  nasty,
  fc.record({ pubkey: nasty, account: fc.dictionary(nasty, fc.oneof(nasty, fc.jsonValue())) }),
);
const cuts = fc.array(fc.nat(), { maxLength: 12 });
const space = fc.constantFrom(undefined, '\t', 2);

describe('the lines of an answer', () => {
  test('are what JSON.parse makes of its accounts, wherever it is cut and however it is spaced', () => {
    fc.assert(
      fc.property(fc.array(element), fc.boolean(), space, cuts, (accounts, context, spaced, at) => {
        const result = context ? { context: { slot: 7, apiVersion: '2' }, value: accounts } : accounts;
        const answer = JSON.stringify({ jsonrpc: '2.0', result, id: 1 }, null, spaced);
        const { text, last } = linesOf(answer, at);
        const lines = text.split('\n');
        expect(lines.pop()).toBe('');
        expect(lines.map((line) => JSON.parse(line))).toEqual(JSON.parse(JSON.stringify(accounts)));
        expect(last).toBe(`{"accounts":${accounts.length},"slot":${context ? 7 : null}}\n`);
      }),
      { numRuns: 500 },
    );
  });

  test('are the bytes of the accounts, at every pair of cut points', () => {
    const answer = withContext(`[${EXACT},${EXACT}]`);
    const length = Buffer.byteLength(answer);
    const last = '{"accounts":2,"slot":18446744073709551615}\n';
    const expected = { text: `${EXACT}\n${EXACT}\n`, last, found: true };
    for (let cut = 0; cut <= length; cut++) {
      for (let next = cut; next <= length; next += 7) expect(linesOf(answer, [cut, next])).toEqual(expected);
    }
  });

  test.each([
    ['the id first', `{"id":[{"result":[1]}],"jsonrpc":"2.0","result":[${EXACT}]}`, null],
    ['the context last', `{"result":{"value":[${EXACT}],"context":{"slot":5}},"id":{"value":[1]}}`, '5'],
    ['a slot elsewhere', `{"slot":1,"x":{"context":{"slot":2}},"result":[${EXACT}]}`, null],
  ])('are found in an answer with %s', (_, answer, slot) => {
    const last = `{"accounts":1,"slot":${slot}}\n`;
    expect(linesOf(answer)).toEqual({ text: `${EXACT}\n`, last, found: true });
  });

  test('have no last one while any byte is missing', () => {
    const answer = withContext(`[${EXACT},${EXACT}]`, '5').trimEnd();
    for (let length = 0; length < answer.length; length++) {
      expect(linesOf(answer.slice(0, length)).last).toBeUndefined();
    }
  });
});

test.each([
  '{"jsonrpc":"2.0","error":{"code":-32602,"message":"x","data":{"result":[1],"value":[2]}},"id":1}',
  '{"jsonrpc":"2.0","result":null,"id":1}',
  '{"jsonrpc":"2.0","result":{"context":{"value":[1]},"value":{"result":[1]}},"id":1}',
])('%p has no accounts', (answer) => {
  expect(linesOf(answer)).toEqual({ text: '', last: undefined, found: false });
});

test.each([
  ...['[1,,2]', '[,1]', '[1,]', '[1}'].map((array) => [`{"result":${array}}`, 'broken'] as const),
  ...['{"result":[1]]}', '{"result":[1]}x', '{"result":[1],}'].map((text) => [text, undefined] as const),
])('%p is no answer: its last line is %p', (answer, last) => expect(linesOf(answer).last).toBe(last));
