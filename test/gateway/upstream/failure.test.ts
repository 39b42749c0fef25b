import { describe, expect, test } from 'bun:test';
import {
  adviceOn,
  adviceOnFailure,
  type Failure,
  failureOf,
  isItsFault,
} from '../../../gateway/upstream/failure.ts';

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
    expect(adviceOnFailure(failure, 'write').other).toBe(may);
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

test('-32003 is no answer of a Cloudbreak, which says so of a commitment that it does not know', () => {
  expect(adviceOn({ code: -32003, message: '' }, 'scan', 'cloudbreak')).toMatchObject({
    other: true,
    costsBudget: false,
  });
  expect(adviceOn({ code: -32003, message: '' }, 'scan', 'superbank')).toMatchObject({ other: false });
});

describe('-32000 of an asset server (das_api `error.rs`)', () => {
  const of = (message: string) => adviceOn({ code: -32000, message }, 'asset', 'das');
  test.each([
    ['Validation Error: Batch Size Error: batch size should not be greater than 1000', { other: false }],
    ['Pagination Error. Only one pagination parameter supported per query.', { other: false }],
    ['Database Error: RecordNotFound Error: Asset Not Found', { other: true, costsBudget: false, atMost: 1 }],
    ['Database Connection Failed', { other: true, costsBudget: true, atMost: Infinity }],
    ['Database Error: Connection reset by peer', { other: true, costsBudget: true, atMost: Infinity }],
  ])('%s: %p', (message, advised) => expect(of(message)).toMatchObject(advised));
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
