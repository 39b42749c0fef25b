import { expect, test } from 'bun:test';
import { MICRO } from '../../../gateway/limits/bucket.ts';
import { type ContactEvent, nextContact, type RateContact } from '../../../gateway/cluster/rate-contact.ts';
import { arrowsIn } from '../../layers/diagram.ts';

const NOW = 100_000;
const rate = { perMs: 5_000, burst: 20 };
const bucket = { micro: 3 * MICRO, atMs: NOW, ...rate };
const own = { bucket, spent: 7 };
const LOST = { sinceMs: NOW - 100, nowMs: NOW, rate, isKnown: true };

const STATES = {
  new: { kind: 'new', bucket: undefined },
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

const replied = { kind: 'replied', nowMs: NOW, lastMs: NOW - 100, reported: 3 } as const;
const EVENTS = {
  missed: { kind: 'missed', ...LOST },
  overdue: { kind: 'overdue', ...LOST },
  'a reply, some nodes are missing': { ...replied, areAll: false },
  'a reply, all nodes are there': { ...replied, areAll: true },
  'a reply after two seconds without one': { ...replied, lastMs: NOW - 2_001, areAll: false },
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

test('the diagrams have every arrow that there is, and no other', () => {
  const arrows = Object.values(STATES).flatMap((from) =>
    Object.values(EVENTS)
      .map((event) => nextContact(from, event).kind)
      .filter((to) => to !== from.kind)
      .map((to) => `${from.kind} --> ${to}`),
  );
  const all = new Set(['[*] --> new', ...arrows]);
  expect(arrowsIn('gateway/cluster/rate-contact.ts')).toEqual(all);
  expect(arrowsIn('docs/architecture.md', 'rate-contact.ts')).toEqual(all);
});

test('what was spent alone is kept until all nodes are back, less what a message reported, and since when', () => {
  for (const from of ['alone for longer', 'recovering'] as const) {
    const { sinceMs } = STATES[from];
    for (const event of [EVENTS.missed, EVENTS.overdue])
      expect(nextContact(STATES[from], event)).toMatchObject({ sinceMs, ...own });
    const heard = nextContact(STATES[from], EVENTS['a reply, some nodes are missing']);
    expect(heard).toMatchObject({ sinceMs, bucket, spent: 4 });
  }
});

test('the own bucket begins with a tenth of a second, or whole where nothing was ever granted, and is not refilled by another outage', () => {
  const tokens = (from: keyof typeof STATES, isKnown: boolean) =>
    (nextContact(STATES[from], { ...EVENTS.missed, isKnown }).bucket?.micro ?? 0) / MICRO;
  expect([tokens('heard', true), tokens('new', false)]).toEqual([0.5, 20]);
  expect([tokens('heard after an outage', false), tokens('alone for longer', true)]).toEqual([3, 3]);
});
