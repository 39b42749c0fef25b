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

/** To which state each event leads: a row a state, a column an event of `EVENTS`, by the first letters of what comes. */
const TABLE = `
  unknown      unkn unpu wait sole behi othe taki unre
  unpublished  unpu unpu wait sole behi othe taki unre
  waiting      unkn unpu wait sole behi othe taki unre
  sole         cut- cut- wait sole behi othe sole unre
  cut-off      cut- cut- wait sole behi othe taki unre
  behind       behi behi behi behi behi behi taki behi
  taking-over  taki taki taki sole behi othe taki unre
  other-origin othe othe wait sole behi othe othe unre
  unreadable   unkn unpu wait sole behi othe taki unre`;

test('whose database it is, from every state, after every event (E42)', () => {
  const rows = Object.entries(STATES).map(([name, state]) => [
    name,
    ...Object.values(EVENTS).map((event) => nextOwnership(state, event).kind.slice(0, 4)),
  ]);
  const words = TABLE.trim().split(/\s+/);
  expect(rows).toEqual(rows.map(({ length }, i) => words.slice(i * length, (i + 1) * length)));
  expect(words).toHaveLength(rows.flat().length);
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
