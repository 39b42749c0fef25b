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
import type { ProfileName } from '../../../shared/config/profiles.ts';
import type { MethodClass } from '../../../shared/config/methods.ts';
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

const event = (
  outcome: Outcome,
  others: Partial<Others> = {},
  profile: ProfileName = 'agave',
): FailoverEvent<string> => ({
  kind: 'outcome',
  outcome,
  profile,
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

/**
 * The way of a call to `a`, of which all three backends say the same: `>b` goes on to b for nothing, `$b` for a retry of the
 * budget, `~b` later, `!` once more over a new connection.
 */
function way(outcome: Outcome, kind: MethodClass, profile: ProfileName): string {
  let state: State = { kind: 'sending', at: 'a', isNew: false, call: { ...CALL, class: kind } };
  let line = 'a';
  while (state.kind !== 'done') {
    state = next(state, event(outcome, {}, profile));
    if (state.kind === 'sending') line += '!';
    if (state.kind !== 'retrying') continue;
    const [at = '']: readonly string[] = state.call.untried;
    line += `${state.delayMs > 0 ? '~' : state.costsBudget ? '$' : '>'}${at}`;
    state = next(state, { kind: 'entered', at });
  }
  return `${line} ${lineOf(state)}`;
}

const das = (message: string) => [error(-32000, message)];
const errors = (...codes: readonly number[]) => codes.map((code) => error(code));
const statuses = (...codes: readonly number[]) => codes.map(status);
const LEFT: Failure = { kind: 'no-answer', reason: LEFT_OUT };
const OWN = [-32002, -32006, -32013, -32015, -32017, -32602, -32700, -32600];
const LACKS = [-32601, -32001, -32010, -32011, -32016, -32018, -32020, -32021];
const THROTTLING = [429, -429, -32029, -32090, -32429];

/** Outcomes of one kind, the class and the profile, and the way; `answer`: the outcome itself is the answer. */
const WAYS: readonly (readonly [readonly Outcome[], MethodClass, ProfileName, string])[] = [
  [[result()], 'light', 'agave', 'a answer of slot 0'],
  [[stream(), { ...stream(), code: -32005 }], 'light', 'agave', 'a stream'],
  [errors(...OWN, -32003), 'history', 'agave', 'a answer'],
  [errors(...LACKS), 'history', 'agave', 'a>b>c answer'],
  [errors(-32004, -32007), 'history', 'agave', 'a>b answer'],
  [errors(-32005, -32019, -32000), 'light', 'agave', 'a$b$c answer'],
  [errors(-32603, -32012), 'scan', 'agave', 'a$b answer'],
  [errors(-32014), 'history', 'agave', 'a~b~c answer'],
  [[error(-32602, 'BigTable query failed (maybe timeout)')], 'history', 'agave', 'a$b$c answer'],
  [errors(...THROTTLING), 'light', 'agave', 'a$b$c [no-backend, replied]'],
  [errors(-32003), 'scan', 'superbank', 'a answer'],
  // It says so of a commitment that it does not know.
  [errors(-32003), 'scan', 'cloudbreak', 'a>b>c answer'],
  // The asset server (das_api `error.rs`) has one code for everything.
  [das('Validation Error: Batch Size Error: batch size'), 'asset', 'das', 'a answer'],
  [das('Pagination Error. Only one pagination parameter'), 'asset', 'das', 'a answer'],
  [das('Database Error: RecordNotFound Error: Asset Not Found'), 'asset', 'das', 'a>b answer'],
  [das('Database Connection Failed'), 'asset', 'das', 'a$b$c answer'],
  [das('Database Error: Connection reset by peer'), 'asset', 'das', 'a$b$c answer'],
  [[UNSENT, LEFT], 'light', 'agave', 'a>b>c [no-backend]'],
  [[NO_ANSWER], 'light', 'agave', 'a$b$c [no-backend]'],
  [[STALE], 'light', 'agave', 'a!$b!$c! [no-backend]'],
  [[GARBAGE], 'light', 'agave', 'a$b$c [no-backend, replied]'],
  [
    statuses(429, 500, 502, 503, 504, 520, 401, 403, 404, 301),
    'light',
    'agave',
    'a$b$c [no-backend, replied]',
  ],
  [statuses(413), 'light', 'agave', 'a>b>c [too-large, replied]'],
  [statuses(400, 431), 'light', 'agave', 'a [no-backend, replied]'],
  [[result()], 'write', 'agave', 'a answer of slot 0'],
  [errors(...OWN, -32003, -32603, -32016, -32000, -32004, -32014, -32601), 'write', 'agave', 'a answer'],
  [errors(-32005), 'write', 'agave', 'a$b$c answer'],
  [errors(...THROTTLING), 'write', 'agave', 'a$b$c [no-backend, replied]'],
  [[UNSENT], 'write', 'agave', 'a>b>c [no-backend]'],
  [statuses(429, 503), 'write', 'agave', 'a$b$c [no-backend, replied]'],
  [statuses(202, 408, 500, 502, 504, 520), 'write', 'agave', 'a [maybe-sent]'],
  [statuses(301, 400, 404, 422), 'write', 'agave', 'a [no-backend, replied]'],
  [statuses(413), 'write', 'agave', 'a [too-large, replied]'],
  [[NO_ANSWER, GARBAGE, STALE], 'write', 'agave', 'a [maybe-sent]'],
];

test.each(WAYS.flatMap(([outcomes, ...row]) => outcomes.map((each) => [each, ...row] as const)))(
  'G1 G2 G3 G4 G6 with %j a call (%s, %s) goes this way: %s',
  (outcome, kind, profile, wanted) => {
    const answer = 'code' in outcome && outcome.code !== undefined ? `answer ${outcome.code}` : '';
    expect(way(outcome, kind, profile)).toBe(wanted.replace(/answer$/, answer));
  },
);

test('a backend that lost a call is asked for it again, first', () => {
  expect(after({ kind: 'no-answer', reason: LOST })).toBe('for nothing: a b c, Infinity left');
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
  ...statuses(503, 502, 429, 401, 403, 301).map((each): [Outcome, string] => [each, 'failed']),
  ...statuses(413, 400).map((each): [Outcome, string] => [each, 'unknown']),
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
