import { describe, expect, test } from 'bun:test';
import {
  attemptEndsMs,
  type FailoverEvent,
  type FailoverState,
  next,
  type Others,
  type Outcome,
  type Progress,
  verdictOn,
} from '../../../gateway/upstream/failover.ts';
import type { Failure } from '../../../gateway/upstream/failure.ts';
import { LEFT_OUT, LOST } from '../../../gateway/http/stream-body.ts';
import { NO_DESCRIPTORS } from '../../../gateway/upstream/http-connection.ts';
import { streamOf, wholeOf } from './of.ts';

type State = FailoverState<string>;
type Call = Progress<string>;

/** A call that has been sent to `a`, with `b` and `c` untried. */
const CALL: Call = {
  class: 'light',
  slotMin: 0,
  untried: ['b', 'c'],
  attemptsLeft: Infinity,
  old: [],
  fallback: undefined,
};
const OTHERS: Others = { any: true, newer: true, further: true };

const rpc = (member: string) => `{"jsonrpc":"2.0",${member},"id":1}`;
const error = (code: number, message = 'says so') =>
  wholeOf(rpc(`"error":{"code":${code},"message":"${message}"}`));
const result = (slot = 0) => ({ ...wholeOf(rpc('"result":1')), slot });
const body = { pipe: () => new Promise<never>(() => undefined), cancel: () => undefined };
const stream = (slot = 0) => ({ ...streamOf(body), slot });
const status = (code: number): Failure => ({ kind: 'status', status: code });
const UNSENT: Failure = { kind: 'unsent', reason: 'ECONNREFUSED' };
const NO_ANSWER: Failure = { kind: 'no-answer', reason: 'ECONNRESET' };
const STALE: Failure = { kind: 'no-answer', reason: 'closed', stale: true };
const GARBAGE: Failure = { kind: 'garbage', reason: 'an empty body' };

const event = (outcome: Outcome, others: Partial<Others> = {}): FailoverEvent<string> => ({
  kind: 'outcome',
  outcome,
  profile: 'agave',
  others: { ...OTHERS, ...others },
});

/** Where a call goes from an attempt at `a`, in a line; a reply of no backend in brackets. */
function after(outcome: Outcome, rows: Partial<Call> = {}, others: Partial<Others> = {}): string {
  return lineOf(
    next({ kind: 'sending', at: 'a', isNew: false, call: { ...CALL, ...rows } }, event(outcome, others)),
  );
}

function lineOf(state: State): string {
  switch (state.kind) {
    case 'waiting':
      return 'waiting';
    case 'sending':
      return `to ${state.at}${state.isNew ? ' over a new connection' : ''}, then ${state.call.untried.join(' ')}`;
    case 'retrying': {
      const { costsBudget, delayMs, call } = state;
      const price = costsBudget ? 'for a retry' : 'for nothing';
      return `${price}${delayMs > 0 ? ` after ${delayMs} ms` : ''}: ${call.untried.join(' ')}, ${call.attemptsLeft} left`;
    }
    case 'done': {
      const { reply } = state;
      if (reply.kind === 'whole') return `answer ${reply.code ?? `of slot ${reply.slot ?? 0}`}`;
      if (reply.kind === 'stream') return 'stream';
      const isReplied = 'replied' in reply && reply.replied === true;
      const isUnsent = 'unsent' in reply;
      return `[${reply.kind}${isReplied ? ', replied' : ''}${isUnsent ? ', unsent' : ''}]`;
    }
  }
}

const MISS = 'for nothing: b c, Infinity left';
const TROUBLE = 'for a retry: b c, Infinity left';

describe('a read goes from an attempt', () => {
  test.each<[string, Outcome, string]>([
    ['a result', result(), 'answer of slot 0'],
    ['a stream', stream(), 'stream'],
    ['a stream that is an error', { ...stream(), code: -32005 }, 'stream'],
    ['an error of its own', error(-32602), 'answer -32602'],
    ['an error that another may mend', error(-32011), MISS],
    ['an error that one other may mend', error(-32004), 'for nothing: b c, 0 left'],
    ['a node that is behind', error(-32005), TROUBLE],
    ['an internal error', error(-32603), 'for a retry: b c, 0 left'],
    ['what is not known yet', error(-32014), 'for a retry after 200 ms: b c, 1 left'],
    ['throttling', error(429), TROUBLE],
    ['nothing sent', UNSENT, MISS],
    ['no answer', NO_ANSWER, TROUBLE],
    ['garbage', GARBAGE, TROUBLE],
    ['a front that is down', status(502), TROUBLE],
    ['a front that throttles', status(429), TROUBLE],
    ['a front that takes no request so long', status(413), MISS],
    ['a front that refuses the bytes', status(400), '[no-backend, replied]'],
    ['a backend that is left out', { kind: 'no-answer', reason: LEFT_OUT }, MISS],
    ['a backend that lost it', { kind: 'no-answer', reason: LOST }, 'for nothing: a b c, Infinity left'],
    ['a kept connection that had closed', STALE, 'to a over a new connection, then b c'],
  ])('with %s', (_, outcome, line) => expect(after(outcome)).toBe(line));

  test('over a new connection with no second try of that kind', () => {
    const state: State = { kind: 'sending', at: 'a', isNew: true, call: CALL };
    expect(lineOf(next(state, event(STALE)))).toBe(TROUBLE);
  });
});

describe('a write goes from an attempt', () => {
  test.each<[string, Outcome, string]>([
    ['a result', result(), 'answer of slot 0'],
    ['an error', error(-32603), 'answer -32603'],
    ['a node that is not fit to take it', error(-32005), TROUBLE],
    ['nothing sent', UNSENT, MISS],
    ['no room', status(429), TROUBLE],
    ['no capacity', status(503), TROUBLE],
    ['a time-out of a front', status(408), '[maybe-sent]'],
    ['a front that is down', status(502), '[maybe-sent]'],
    ['a refusal', status(404), '[no-backend, replied]'],
    ['no answer', NO_ANSWER, '[maybe-sent]'],
    ['a kept connection that had closed', STALE, '[maybe-sent]'],
    ['garbage', GARBAGE, '[maybe-sent]'],
  ])('with %s', (_, outcome, line) => expect(after(outcome, { class: 'write' })).toBe(line));
});

describe('a call that has been through more', () => {
  const kept = (code: number) => ({ fallback: error(code) });
  test.each<[string, string, string]>([
    [
      'with none untried its first error is the answer',
      after(NO_ANSWER, { ...kept(-32005), untried: [] }),
      'answer -32005',
    ],
    ['with no attempt left too', after(error(-32601), { ...kept(-32004), attemptsLeft: 0 }), 'answer -32004'],
    ['a later error that is final is the answer', after(error(-32602), kept(-32005)), 'answer -32602'],
    ['an attempt of few is used up', after(NO_ANSWER, { attemptsLeft: 1 }), 'for a retry: b c, 0 left'],
    ['throttling is told to nobody', after(error(429), { untried: [] }), '[no-backend, replied]'],
    ['without any reply that is said', after(UNSENT, { untried: [] }), '[no-backend]'],
    ['too long for the only one', after(status(413), { untried: [] }), '[too-large, replied]'],
    [
      'too long for all',
      after(status(413), { untried: [], fallback: { kind: 'too-large', replied: true } }),
      '[too-large, replied]',
    ],
    [
      'too long for the last alone',
      after(status(413), { untried: [], fallback: { kind: 'no-backend', replied: false } }),
      '[no-backend, replied]',
    ],
    ["an archive's skip adds nothing to a node's", after(error(-32009), kept(-32007)), 'answer -32007'],
    ["an archive's skip alone is the answer", after(error(-32009), kept(-32005)), 'answer -32009'],
    ['a slot that another may have', after(error(-32016)), MISS],
    ['a slot that no other has', after(error(-32016), {}, { further: false }), 'answer -32016'],
    [
      'the same behind another error',
      after(error(-32016), kept(-32005), { further: false }),
      'answer -32005',
    ],
    [
      'what is not known yet is asked for at the same one where no other has room',
      after(error(-32014), { untried: [] }, { any: false }),
      'for a retry after 200 ms: a, 1 left',
    ],
    [
      'and a third time, and no more',
      after(error(-32014), { ...kept(-32014), untried: [], attemptsLeft: 0 }, { any: false }),
      'answer -32014',
    ],
  ])('%s', (_, line, expected) => expect(line).toBe(expected));
});

describe('an answer that is older than its caller has been shown', () => {
  const shown = { slotMin: 105 };
  test.each<[string, string, string]>([
    ['is left for a newer one', after(result(100), shown), MISS],
    ['is the answer when none is newer', after(result(100), shown, { newer: false }), 'answer of slot 100'],
    [
      'is the answer when none is left',
      after(NO_ANSWER, { ...shown, untried: [], fallback: result(100) }),
      'answer of slot 100',
    ],
    ['is none when it says no slot', after(result(), shown), 'answer of slot 0'],
    ['is none when it is as new', after(result(105), shown), 'answer of slot 105'],
    ['as a stream is asked for again, last', after(stream(100), shown), 'for nothing: b c a, Infinity left'],
    [
      'as a stream gives way to the first error where no attempt is left',
      after(stream(100), { ...shown, attemptsLeft: 0, fallback: error(-32004) }),
      'answer -32004',
    ],
    ['as a second stream from there is taken', after(stream(100), { ...shown, old: ['a'] }), 'stream'],
  ])('%s', (_, line, expected) => expect(line).toBe(expected));
});

describe('every state knows every event', () => {
  const states: readonly State[] = [
    { kind: 'waiting', call: CALL },
    { kind: 'sending', at: 'a', isNew: false, call: CALL },
    { kind: 'retrying', costsBudget: true, delayMs: 0, call: { ...CALL, fallback: error(-32005) } },
    { kind: 'done', reply: { kind: 'maybe-sent' } },
  ];
  const events = [
    { kind: 'entered', at: 'b' },
    { kind: 'none' },
    { kind: 'caller-left' },
    event(result()),
  ] as const;
  const SENT = 'to b, then c';
  const LEFT = '[caller-left]';
  const SAME = 'to a, then b c';
  test.each([
    ['waiting', SENT, '[no-backend]', '[caller-left, unsent]', 'waiting'],
    ['sending', SAME, SAME, LEFT, 'answer of slot 0'],
    ['retrying', SENT, 'answer -32005', LEFT, 'for a retry: b c, Infinity left'],
    ['done', '[maybe-sent]', '[maybe-sent]', '[maybe-sent]', '[maybe-sent]'],
  ])('%s', (kind, ...lines) => {
    const state = states.find((each) => each.kind === kind);
    expect<unknown>(events.map((each) => state && lineOf(next(state, each)))).toEqual(lines);
  });
});

test.each<[Outcome, string]>([
  [result(), 'well'],
  [stream(), 'well'],
  [error(-32602), 'well'],
  [error(-32005), 'failed'],
  [error(-32029), 'failed'],
  [NO_ANSWER, 'failed'],
  [GARBAGE, 'failed'],
  [status(503), 'failed'],
  [status(413), 'unknown'],
  [{ kind: 'unsent', reason: NO_DESCRIPTORS }, 'unknown'],
])('%j says of its backend that it is %s, or nothing', (outcome, verdict) => {
  expect<string>(verdictOn(outcome)).toBe(verdict);
});

test('an attempt has its own time, all have the last, and half a second of the call where all backends hang', () => {
  const deadlines = { startedMs: 1_000, attemptMs: 30_000, lastMs: 61_000 };
  expect(attemptEndsMs(deadlines, 1_000, false)).toBe(31_000);
  expect(attemptEndsMs(deadlines, 45_000, false)).toBe(61_000);
  expect(attemptEndsMs(deadlines, 1_200, true)).toBe(1_500);
});
