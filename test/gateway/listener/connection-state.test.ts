import { describe, expect, test } from 'bun:test';
import {
  type CallerEvent,
  type CallerFacts,
  type CallerState,
  next,
  READ_OUT_BYTES_MAX,
} from '../../../gateway/listener/connection-state.ts';
import { arrowsIn } from '../../layers/diagram.ts';

type State = CallerState<string>;
type Event = CallerEvent<string>;
type Kind = State['kind'];

const [NONE, SOME] = [Buffer.alloc(0), Buffer.from('GET')];
const FACTS: CallerFacts = { nowMs: 7, isUnread: false, isHalfClosed: false, isDraining: false };

const statesWith = (ahead: Buffer): readonly State[] => [
  { kind: 'idle', ahead, sinceMs: 1 },
  { kind: 'queued', ahead, sinceMs: 1 },
  { kind: 'receiving', exchange: 'r', ahead, sinceMs: 1 },
  { kind: 'answering', exchange: 'r', ahead },
  { kind: 'discarding', exchange: 'r', ahead, sinceMs: 1 },
  { kind: 'unread', ahead },
  { kind: 'ending', bytes: 1 },
  { kind: 'lingering', bytes: 1, fromMs: 1, sinceMs: 1 },
  { kind: 'closed' },
];
const eventsWith = (ahead: Buffer) =>
  ({
    part: { kind: 'part', ahead, sinceMs: 2 },
    head: { kind: 'head', exchange: 'r', ahead, sinceMs: 2 },
    request: { kind: 'request', exchange: 'r', ahead },
    ahead: { kind: 'ahead', ahead },
    answered: { kind: 'answered', isKept: true },
    last: { kind: 'answered', isKept: false },
    full: { kind: 'full' },
    drained: { kind: 'drained' },
    little: { kind: 'thrown-away', bytes: 1 },
    much: { kind: 'thrown-away', bytes: READ_OUT_BYTES_MAX },
    halfClosed: { kind: 'half-closed' },
    end: { kind: 'end' },
    giveUp: { kind: 'give-up' },
    gone: { kind: 'gone' },
  }) as const satisfies Record<string, Event>;
type EventName = keyof ReturnType<typeof eventsWith>;
type Arrows = Partial<Record<EventName, Kind>>;

const GONE: Arrows = { giveUp: 'closed', gone: 'closed' };
const OPEN: Arrows = { end: 'ending', ...GONE };
const BETWEEN: Arrows = { part: 'idle', head: 'receiving', request: 'answering', full: 'unread', ...OPEN };
/** Where a connection goes with nothing ahead; by any other event it stays. */
const ARROWS: Readonly<Record<Kind, Arrows>> = {
  idle: BETWEEN,
  queued: BETWEEN,
  receiving: { request: 'answering', answered: 'discarding', last: 'ending', ...OPEN },
  answering: { answered: 'idle', last: 'ending', ...OPEN },
  discarding: { request: 'idle', ...OPEN },
  unread: { drained: 'idle', ...OPEN },
  ending: { drained: 'lingering', much: 'closed', ...GONE },
  lingering: { halfClosed: 'closed', much: 'closed', ...GONE },
  closed: {},
};
/** By these a request is over. */
const OVER: Readonly<Partial<Record<Kind, EventName>>> = {
  answering: 'answered',
  discarding: 'request',
  unread: 'drained',
};

const names = Object.keys(eventsWith(NONE)) as EventName[]; // the keys of what is built above
const each = (ahead: Buffer) =>
  statesWith(ahead).flatMap((state) =>
    names.map((name) => ({ state, name, event: eventsWith(ahead)[name] })),
  );

test('a connection goes where the table says, by every event in every state', () => {
  for (const { state, name, event } of each(NONE))
    expect([state.kind, name, next(state, event, FACTS).kind]).toEqual([
      state.kind,
      name,
      ARROWS[state.kind][name] ?? state.kind,
    ]);
});

describe('when a request is over', () => {
  test.each<[string, Buffer, Partial<CallerFacts>, Kind]>([
    ['nothing is ahead', NONE, {}, 'idle'],
    ['more has come', SOME, {}, 'queued'],
    ['the caller does not read', SOME, { isUnread: true }, 'unread'],
    ['the gateway stops', SOME, { isDraining: true }, 'ending'],
    ['the caller sends no more', NONE, { isHalfClosed: true }, 'ending'],
    ['the caller sends no more, and more has come', SOME, { isHalfClosed: true }, 'queued'],
  ])('and %s', (_name, ahead, facts, kind) => {
    for (const state of statesWith(ahead)) {
      const name = OVER[state.kind];
      if (name === undefined) continue;
      const after = next(state, eventsWith(ahead)[name], { ...FACTS, ...facts });
      expect(after).toMatchObject({ kind, ...(kind === 'ending' ? {} : { ahead }) });
    }
  });
});

test('a caller who sends no more is answered what has come, and the connection ends', () => {
  const after = (ahead: Buffer, name: EventName) =>
    statesWith(ahead).map(
      (state) => next(state, eventsWith(ahead)[name], { ...FACTS, isHalfClosed: true }).kind,
    );
  const [open, closing] = [statesWith(SOME).map(({ kind }) => kind), ['ending', 'closed', 'closed']];
  expect(after(SOME, 'halfClosed')).toEqual(['ending', ...open.slice(1, 6), ...closing] as Kind[]);
  const ended = ['ending', 'queued', 'ending', 'answering', 'ending', 'unread', ...closing];
  expect(after(NONE, 'halfClosed')).toEqual(ended as Kind[]);
  expect(after(NONE, 'drained').at(6)).toBe('closed');
});

test('what a state knows goes with it, and its time begins anew where its caller has done something', () => {
  const [idle, , receiving, , , , ending, lingering] = statesWith(NONE);
  const at = (state: State | undefined, name: EventName) =>
    state && next(state, eventsWith(SOME)[name], FACTS);
  expect(at(idle, 'part')).toEqual({ kind: 'idle', ahead: SOME, sinceMs: 2 });
  expect(at(idle, 'head')).toEqual({ kind: 'receiving', exchange: 'r', ahead: SOME, sinceMs: 2 });
  expect(at(receiving, 'head')).toEqual({ kind: 'receiving', exchange: 'r', ahead: SOME, sinceMs: 1 });
  expect(at(receiving, 'answered')).toMatchObject({ kind: 'discarding', sinceMs: 7 });
  expect(at(ending, 'drained')).toEqual({ kind: 'lingering', bytes: 1, fromMs: 7, sinceMs: 7 });
  expect(at(lingering, 'little')).toEqual({ kind: 'lingering', bytes: 2, fromMs: 1, sinceMs: 7 });
});

test('the diagram has the arrows of the states, and no others', () => {
  const drawn = [...arrowsIn('gateway/listener/connection-state.ts')].map((arrow) => arrow.split(' --> '));
  const open = statesWith(SOME)
    .map(({ kind }) => kind as string)
    .slice(0, 6); // those before `ending`
  const behind = drawn.filter(([from]) => from === 'over');
  const expanded = drawn.flatMap(([from = '', to = '']) => {
    if (from === 'over' || from === '[*]') return [];
    if (to === 'over') return behind.map(([, each]) => [from, each]);
    return from === 'open' ? open.map((each) => [each, to]) : [[from, to]];
  });
  const arrows = (pairs: readonly (readonly (string | undefined)[])[]) =>
    [...new Set(pairs.filter(([from, to]) => from !== to).map((pair) => pair.join(' --> ')))].toSorted();
  const truths = [true, false];
  const gone = [NONE, SOME].flatMap(each).flatMap(({ state, event }) =>
    truths.flatMap((isUnread) =>
      truths.flatMap((isHalfClosed) =>
        truths.map((isDraining) => {
          // With nothing ahead it is not queued.
          if (state.kind === 'queued' && state.ahead.length === 0) return [];
          return [state.kind, next(state, event, { nowMs: 7, isUnread, isHalfClosed, isDraining }).kind];
        }),
      ),
    ),
  );
  expect(arrows(expanded)).toEqual(arrows(gone.filter((pair) => pair.length > 0)));
});
