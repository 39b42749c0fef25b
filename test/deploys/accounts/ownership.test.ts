import { expect, test } from 'bun:test';
import {
  complaintOf,
  deliveriesOf,
  nextOwnership,
  type Ownership,
  type OwnershipEvent,
  whyReadOnly,
} from '../../../deploys/accounts/ownership.ts';

const STATES = {
  unknown: { kind: 'unknown' },
  unpublished: { kind: 'unpublished' },
  waiting: { kind: 'waiting' },
  sole: { kind: 'sole', isWhole: true },
  'cut-off': { kind: 'cut-off' },
  behind: { kind: 'behind', own: 6, published: 7 },
  'taking-over': { kind: 'taking-over' },
  'other-origin': { kind: 'other-origin', origin: 'there' },
  unreadable: { kind: 'unreadable', figure: 'turns "inf"' },
} satisfies { [Kind in Ownership['kind']]: Extract<Ownership, { kind: Kind }> };

const EVENTS = {
  away: { kind: 'away', wasPublished: true },
  'never there': { kind: 'away', wasPublished: false },
  held: { kind: 'held' },
  claimed: { kind: 'claimed', isWhole: false },
  later: { kind: 'later', own: 1, published: 2 },
  other: { kind: 'other-origin', origin: 'elsewhere' },
  'take-over': { kind: 'take-over' },
  unreadable: { kind: 'unreadable', figure: 'seq "nan"' },
} satisfies Record<string, OwnershipEvent>;

type Row = readonly [from: keyof typeof STATES, ...to: readonly (keyof typeof STATES)[]];

/** To which state each event leads, in the order of `EVENTS`. */
const TABLE: readonly Row[] = [
  [
    'unknown',
    'unknown',
    'unpublished',
    'waiting',
    'sole',
    'behind',
    'other-origin',
    'taking-over',
    'unreadable',
  ],
  [
    'unpublished',
    'unpublished',
    'unpublished',
    'waiting',
    'sole',
    'behind',
    'other-origin',
    'taking-over',
    'unreadable',
  ],
  [
    'waiting',
    'unknown',
    'unpublished',
    'waiting',
    'sole',
    'behind',
    'other-origin',
    'taking-over',
    'unreadable',
  ],
  ['sole', 'cut-off', 'cut-off', 'waiting', 'sole', 'behind', 'other-origin', 'sole', 'unreadable'],
  ['cut-off', 'cut-off', 'cut-off', 'waiting', 'sole', 'behind', 'other-origin', 'taking-over', 'unreadable'],
  ['behind', 'behind', 'behind', 'behind', 'behind', 'behind', 'behind', 'taking-over', 'behind'],
  [
    'taking-over',
    'taking-over',
    'taking-over',
    'taking-over',
    'sole',
    'behind',
    'other-origin',
    'taking-over',
    'unreadable',
  ],
  [
    'other-origin',
    'other-origin',
    'other-origin',
    'waiting',
    'sole',
    'behind',
    'other-origin',
    'other-origin',
    'unreadable',
  ],
  [
    'unreadable',
    'unknown',
    'unpublished',
    'waiting',
    'sole',
    'behind',
    'other-origin',
    'taking-over',
    'unreadable',
  ],
];

test.each(TABLE)('whose database it is, from %s, after every event (E42)', (from, ...to) => {
  expect(TABLE.map(([state]) => state)).toEqual(Object.keys(STATES) as (typeof from)[]);
  const events: readonly OwnershipEvent[] = Object.values(EVENTS);
  expect(events.map((event) => nextOwnership(STATES[from], event).kind)).toEqual([...to]);
});

test.each([
  // Redis itself confirms the turns of who was cut off, or does not.
  ['unknown', 'none', 'no', 'complaint'],
  ['unpublished', 'none', 'yes', 'quiet'],
  ['waiting', 'none', 'no', 'complaint'],
  ['sole', 'fenced', 'yes', 'quiet'],
  ['cut-off', 'fenced', 'yes', 'quiet'],
  ['behind', 'none', 'no', 'complaint'],
  ['taking-over', 'none', 'no', 'quiet'],
  ['other-origin', 'free', 'yes', 'complaint'],
  ['unreadable', 'none', 'no', 'complaint'],
] as const)('%s: deliveries %s, changes %s, operator %s', (kind, deliveries, changes, operator) => {
  const state = STATES[kind];
  expect(deliveriesOf(state)).toBe(deliveries);
  expect(whyReadOnly(state) === undefined ? 'yes' : 'no').toBe(changes);
  expect(complaintOf(state) === undefined ? 'quiet' : 'complaint').toBe(operator);
});

test('the complaint of who is behind has both generations and the command that decides', () => {
  expect(complaintOf(STATES.behind)).toMatch(/generation 6, published is 7.*sluice deploys take-over/);
});

test('who was to take over and is behind is told that another copy was before it (E47)', () => {
  expect(complaintOf(nextOwnership(STATES['taking-over'], EVENTS.later))).toMatch(
    /^Another copy of this database was published before this one could take over \(generation 1, published is 2\)/,
  );
});

test('who is behind with the higher generation is not called older', () => {
  expect(complaintOf({ kind: 'behind', own: 8, published: 6 })).toMatch(
    /^Another copy of this database has published since \(generation 8, published is 6\).*sluice deploys take-over/,
  );
});
