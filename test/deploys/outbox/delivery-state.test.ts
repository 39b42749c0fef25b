import { describe, expect, test } from 'bun:test';
import {
  type DeliveryEvent,
  type DeliveryProgress,
  nextDelivery,
} from '../../../deploys/outbox/delivery-state.ts';
import type { Verdict } from '../../../deploys/outbox/outcome.ts';
import { arrowsIn } from '../../layers/diagram.ts';

const NOW = 1_000_000;
const WAITING = { nextAttemptAtMs: NOW, finishedAtMs: null, resendAtMs: null };
const ATTEMPTING = { state: 'attempting', ...WAITING, nextAttemptAtMs: null } as const;
const FINAL = { nextAttemptAtMs: null, finishedAtMs: 7, resendAtMs: null };
const STATES = {
  queued: { state: 'queued', attempts: 0, ...WAITING },
  attempting: { ...ATTEMPTING, attempts: 1 },
  'attempting the sixth time': { ...ATTEMPTING, attempts: 6 },
  retry_scheduled: { state: 'retry_scheduled', attempts: 1, ...WAITING },
  delivered: { state: 'delivered', attempts: 1, ...FINAL },
  failed: { state: 'failed', attempts: 6, ...FINAL },
  skipped: { state: 'skipped', attempts: 0, ...FINAL },
  cancelled: { state: 'cancelled', attempts: 3, ...FINAL },
} as const satisfies Record<string, DeliveryProgress>;

const SUCCEEDED: Verdict = { kind: 'succeeded' };
const FAILED: Verdict = { kind: 'failed', error: 'timeout' };
const INTERRUPTED: Verdict = { kind: 'interrupted' };
const ended = (verdict: Verdict, stoppedAs: 'skipped' | 'cancelled' | null = null): DeliveryEvent => ({
  kind: 'ended',
  verdict,
  stoppedAs,
  atMs: NOW,
});
const byHand = (verdict: Verdict, stoppedAs: 'skipped' | null = null): DeliveryEvent => ({
  kind: 'ended-by-hand',
  verdict,
  stoppedAs,
  atMs: NOW,
});
const EVENTS: readonly DeliveryEvent[] = [
  { kind: 'claimed' },
  ended(SUCCEEDED),
  ended(FAILED),
  ended(INTERRUPTED),
  ended(FAILED, 'skipped'),
  ended(INTERRUPTED, 'cancelled'),
  { kind: 'claimed-by-hand' },
  byHand(SUCCEEDED),
  byHand(FAILED),
  byHand(INTERRUPTED),
  { kind: 'stopped', stoppedAs: 'skipped', atMs: NOW },
  { kind: 'stopped', stoppedAs: 'cancelled', atMs: NOW },
];

test.each([
  ['queued', 'attempting . . . . . . . . . skipped cancelled'],
  ['attempting', '. delivered retry_scheduled retry_scheduled skipped cancelled . . . . . .'],
  ['attempting the sixth time', '. delivered failed retry_scheduled skipped cancelled . . . . . .'],
  ['retry_scheduled', 'attempting . . . . . . delivered . . skipped cancelled'],
  ['delivered', '. . . . . . . . . . . .'],
  ['failed', '. . . . . . . delivered . . . .'],
  ['skipped', '. . . . . . . delivered . . . .'],
  ['cancelled', '. . . . . . . delivered . . . .'],
] as const)('a delivery that is %s, by every event', (name, states) => {
  const from = STATES[name];
  const to = EVENTS.map((event) => nextDelivery(from, event).state);
  expect(to.map((state) => (state === from.state ? '.' : state)).join(' ')).toBe(states);
});

test('the diagrams have every arrow that there is, and no other', () => {
  const all = new Set(['[*] --> queued', '[*] --> skipped']);
  for (const from of Object.values(STATES))
    for (const event of EVENTS) {
      const { state } = nextDelivery(from, event);
      if (state !== from.state) all.add(`${from.state} --> ${state}`);
    }
  expect(arrowsIn('deploys/outbox/delivery-state.ts')).toEqual(all);
  expect(arrowsIn('docs/architecture.md', '## The path of a delivery')).toEqual(all);
});

test.each([
  [1, 1],
  [5, 5],
  [6, 5],
])(
  'automatic attempt %i that was interrupted leaves %i made, and the next is due at once (§4.3)',
  (number, attempts) => {
    const interrupted = nextDelivery({ ...ATTEMPTING, attempts: number }, ended(INTERRUPTED));
    expect(interrupted).toEqual({ state: 'retry_scheduled', ...WAITING, attempts });
  },
);

describe('an attempt asked for by hand', () => {
  test.each(['retry_scheduled', 'failed', 'delivered'] as const)(
    'delivers with a success, and changes nothing else of one that is %s',
    (name) => {
      const row = STATES[name];
      expect(nextDelivery({ ...row, resendAtMs: NOW }, { kind: 'claimed-by-hand' })).toEqual(row);
      expect(nextDelivery(row, byHand(FAILED))).toEqual(row);
      expect(nextDelivery(row, byHand(INTERRUPTED))).toEqual({ ...row, resendAtMs: NOW });
      const finishedAtMs = row.finishedAtMs === null || name === 'failed' ? NOW : 7;
      const delivered = { ...row, ...FINAL, state: 'delivered', finishedAtMs } as const;
      expect(nextDelivery(row, byHand(SUCCEEDED))).toEqual(delivered);
    },
  );

  test('that was interrupted is not made again for a webhook that left', () => {
    expect(nextDelivery(STATES.failed, byHand(INTERRUPTED, 'skipped'))).toEqual(STATES.failed);
  });
});
