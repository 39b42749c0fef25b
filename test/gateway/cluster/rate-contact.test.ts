import { expect, test } from 'bun:test';
import { MICRO } from '../../../gateway/limits/bucket.ts';
import { type ContactEvent, nextContact, type RateContact } from '../../../gateway/cluster/rate-contact.ts';

const NOW = 100_000;
const rate = { perMs: 5_000, burst: 20 };
const bucket = { micro: 3 * MICRO, atMs: NOW, ...rate };
const own = { bucket, spent: 7 };
const START = { nowMs: NOW, rate, isKnown: true };

const STATES = {
  new: { kind: 'heard', repliesSinceMs: undefined, bucket: undefined },
  heard: { kind: 'heard', repliesSinceMs: NOW - 9_000, bucket: undefined },
  'heard after an outage': { kind: 'heard', repliesSinceMs: NOW - 9_000, bucket },
  'alone for a second': { kind: 'alone', sinceMs: NOW - 1_000, ...own },
  'alone for longer': { kind: 'alone', sinceMs: NOW - 1_001, ...own },
  'recovering for a second': {
    kind: 'recovering',
    sinceMs: NOW - 1_000,
    repliesSinceMs: NOW - 1_000,
    ...own,
  },
  recovering: { kind: 'recovering', sinceMs: NOW - 9_000, repliesSinceMs: NOW - 1_999, ...own },
  'recovering for two seconds': {
    kind: 'recovering',
    sinceMs: NOW - 9_000,
    repliesSinceMs: NOW - 2_000,
    ...own,
  },
} as const satisfies Record<string, RateContact>;

const replied = { kind: 'replied', nowMs: NOW, heardMs: NOW - 100 } as const;
const EVENTS = {
  missed: { kind: 'missed', sentMs: NOW - 100, ...START },
  overdue: { kind: 'overdue', ...START },
  'a reply, some nodes are missing': { ...replied, areAll: false },
  'a reply, all nodes are there': { ...replied, areAll: true },
  'a reply after two seconds without one': { ...replied, heardMs: NOW - 2_001, areAll: false },
} as const satisfies Record<string, ContactEvent>;

test.each([
  ['new', ['alone', 'alone', 'heard', 'heard', 'heard']],
  ['heard', ['alone', 'recovering', 'heard', 'heard', 'heard']],
  ['heard after an outage', ['alone', 'recovering', 'heard', 'heard', 'heard']],
  ['alone for a second', ['alone', 'alone', 'heard', 'heard', 'heard']],
  ['alone for longer', ['alone', 'alone', 'recovering', 'heard', 'recovering']],
  ['recovering for a second', ['alone', 'recovering', 'heard', 'heard', 'heard']],
  ['recovering', ['alone', 'recovering', 'recovering', 'heard', 'recovering']],
  ['recovering for two seconds', ['alone', 'recovering', 'heard', 'heard', 'recovering']],
] as const)('%s, by every event', (from, kinds) => {
  const before = structuredClone(STATES[from]);
  expect(Object.values(EVENTS).map((event) => nextContact(STATES[from], event).kind)).toEqual([...kinds]);
  expect(STATES[from]).toEqual(before);
});

test('what was spent alone is kept until all nodes are back, and since when', () => {
  for (const from of ['alone for longer', 'recovering'] as const)
    for (const event of [EVENTS.missed, EVENTS.overdue, EVENTS['a reply, some nodes are missing']])
      expect(nextContact(STATES[from], event)).toMatchObject({ sinceMs: STATES[from].sinceMs, ...own });
});

test('the own bucket begins with a tenth of a second, or whole where nothing was ever granted, and is not refilled by another outage', () => {
  const tokens = (from: keyof typeof STATES, isKnown: boolean) =>
    (nextContact(STATES[from], { ...EVENTS.missed, isKnown }).bucket?.micro ?? 0) / MICRO;
  expect([tokens('heard', true), tokens('new', false)]).toEqual([0.5, 20]);
  expect([tokens('heard after an outage', false), tokens('alone for longer', true)]).toEqual([3, 3]);
});
