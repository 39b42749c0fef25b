import { describe, expect, test } from 'bun:test';
import { type Failure, adviceOnFailure, isItsFault } from '../../../gateway/upstream/failure.ts';
import type { MethodClass } from '../../../gateway/methods/table.ts';

const UNSENT: Failure = { kind: 'unsent', reason: 'ECONNREFUSED' };
const NO_ANSWER: Failure = { kind: 'no-answer', reason: 'ECONNRESET' };
const GARBAGE: Failure = { kind: 'garbage', reason: 'an empty body' };
const status = (code: number): Failure => ({ kind: 'status', status: code });

describe('a write goes to another backend only when the first cannot have acted on it (DESIGN 3.5)', () => {
  test.each([
    [UNSENT, true],
    [status(429), true],
    [status(503), true],
    [status(500), false],
    [status(502), false],
    [status(504), false],
    [status(301), false],
    [status(413), false],
    [NO_ANSWER, false],
    [GARBAGE, false],
  ] as const)('%j: %p', (failure, may) => {
    expect(adviceOnFailure(failure, 'write') !== 'final').toBe(may);
  });
});

test.each<[MethodClass]>([['light'], ['scan'], ['history'], ['meta'], ['asset']])(
  'a read (%s) goes to another after any failure',
  (kind) => {
    for (const failure of [UNSENT, NO_ANSWER, GARBAGE, status(429), status(500)]) {
      expect(adviceOnFailure(failure, kind)).not.toBe('final');
    }
  },
);

test.each([
  [{ kind: 'status', status: 413 }, false],
  [{ kind: 'status', status: 400 }, false],
  [{ kind: 'status', status: 429 }, true],
  [{ kind: 'status', status: 301 }, true],
  [{ kind: 'status', status: 502 }, true],
  [{ kind: 'garbage', reason: 'x' }, true],
  [{ kind: 'no-answer', reason: 'x' }, true],
  [{ kind: 'unsent', reason: 'x' }, true],
] as const)('%j speaks against the backend itself: %p', (failure, itsFault) => {
  expect(isItsFault(failure)).toBe(itsFault);
});
