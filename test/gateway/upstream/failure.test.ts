import { describe, expect, test } from 'bun:test';
import {
  adviceOn,
  adviceOnFailure,
  type Failure,
  failureOf,
  isItsFault,
  THROTTLED,
} from '../../../gateway/upstream/failure.ts';
import type { MethodClass } from '../../../gateway/methods/table.ts';

const UNSENT: Failure = { kind: 'unsent', reason: 'ECONNREFUSED' };
const NO_ANSWER: Failure = { kind: 'no-answer', reason: 'ECONNRESET' };
const GARBAGE: Failure = { kind: 'garbage', reason: 'an empty body' };
const status = (code: number): Failure => ({ kind: 'status', status: code });

test.each([
  [UNSENT, true],
  [status(429), true],
  [status(503), true],
  [status(500), false],
  [status(502), false],
  [status(301), false],
  [status(413), false],
  [NO_ANSWER, false],
  [GARBAGE, false],
] as const)(
  'a write goes to another backend only when the first cannot have acted on it: %j, %p',
  (failure, may) => {
    expect(adviceOnFailure(failure, 'write') !== 'final').toBe(may);
  },
);

test.each<[MethodClass]>([['light'], ['scan'], ['history'], ['meta'], ['asset']])(
  'a read (%s) goes to another after any failure',
  (kind) => {
    for (const failure of [UNSENT, NO_ANSWER, GARBAGE, status(429), status(500)])
      expect(adviceOnFailure(failure, kind)).not.toBe('final');
  },
);

test.each([
  [status(413), false],
  [status(400), false],
  [status(429), true],
  [status(301), true],
  [status(502), true],
  [GARBAGE, true],
  [NO_ANSWER, true],
  [UNSENT, true],
] as const)('%j speaks against the backend itself: %p', (failure, itsFault) => {
  expect(isItsFault(failure)).toBe(itsFault);
});

const advice = (code: number, kind: Parameters<typeof adviceOn>[1] = 'light', message = '') =>
  adviceOn({ code, message }, kind, 'agave');

describe('what an error of the method says about trying another backend', () => {
  test.each([
    -32700, -32600, -32602, -32002, -32003, -32006, -32008, -32009, -32013, -32015, -32017, -32099, 1,
  ])('%p is the answer', (code) => expect(advice(code)).toBe('final'));

  test.each([-32601, -32001, -32010, -32011, -32016, -32018, -32020, -32021])(
    '%p: another may have it',
    (code) => expect(advice(code)).toBe('miss'),
  );

  test.each([-32005, -32019, -32000])('%p: this one is in trouble, another may not be', (code) =>
    expect(advice(code)).toBe('trouble'),
  );

  test.each([
    [-32603, 'trouble-once'],
    [-32012, 'trouble-once'],
    [-32004, 'miss-once'],
    [-32007, 'miss-once'],
    [-32014, 'later'],
  ])('%p: %s', (code, said) => expect<string>(advice(code)).toBe(said));

  test('-32003 is no answer of a Cloudbreak, which says so of a commitment that it does not know', () => {
    expect(adviceOn({ code: -32003, message: '' }, 'scan', 'cloudbreak')).toBe('miss');
    expect(adviceOn({ code: -32003, message: '' }, 'scan', 'superbank')).toBe('final');
  });

  test('a bad parameter is final, unless it is BigTable that failed', () => {
    expect(advice(-32602, 'history', 'BigTable query failed (maybe timeout due to too large range)')).toBe(
      'trouble',
    );
    expect(advice(-32602, 'history', 'Invalid param: BigTable')).toBe('final');
  });

  test.each([429, -429, -32029, -32090, -32429])("%p is our throttling, not the caller's", (code) => {
    expect([advice(code), advice(code, 'write'), THROTTLED.has(code)]).toEqual(['trouble', 'trouble', true]);
  });

  test('a write goes elsewhere only when the node says that it is behind', () => {
    expect(advice(-32005, 'write')).toBe('trouble');
    for (const code of [-32002, -32003, -32603, -32016, -32000, -32004])
      expect(advice(code, 'write')).toBe('final');
  });
});

describe('-32000 of an asset server (das_api `error.rs`)', () => {
  const of = (message: string) => adviceOn({ code: -32000, message }, 'asset', 'das');
  test.each([
    ['Validation Error: Batch Size Error: batch size should not be greater than 1000', 'final'],
    ['Pagination Error. Only one pagination parameter supported per query.', 'final'],
    ['Database Error: RecordNotFound Error: Asset Not Found', 'miss-once'],
    ['Database Connection Failed', 'trouble'],
    ['Database Error: Connection reset by peer', 'trouble'],
  ])('%s: %s', (message, advised) => expect<string>(of(message)).toBe(advised));
});

describe('the error of an answer', () => {
  const of = (text: string) => failureOf(new TextEncoder().encode(text));
  test.each([
    [
      '{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is behind","data":{"numSlotsBehind":7}},"id":1}\n',
      -32005,
    ],
    ['{"id":1,"jsonrpc":"2.0","error":{"message":"x","code":-32007}}', -32007],
    ['{"jsonrpc":"2.0","result":null,"error":{"code":429,"message":"slow down"},"id":1}', 429],
    ['{"jsonrpc":"2.0","error":"text","id":1}', 0],
    ['{"jsonrpc":"2.0","error":{"code":"x"},"id":1}', 0],
  ])('%s', (text, code) => expect(of(text)?.code).toBe(code));

  test.each([
    '{"jsonrpc":"2.0","result":{"error":{"code":1}},"id":1}',
    '{"jsonrpc":"2.0","result":"\\"error\\"","id":1}',
    '{"jsonrpc":"2.0","result":1,"error":null,"id":1}',
    '{"error"',
    '',
  ])('%s has none', (text) => expect(of(text)).toBeUndefined());
});
