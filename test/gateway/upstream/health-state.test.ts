import { describe, expect, test } from 'bun:test';
import { healthAfter, type Measure, type Reading, referenceSlot } from '../../../gateway/upstream/health.ts';
import { type HealthState, HEALTHY } from '../../../gateway/upstream/backend.ts';

const reading = (confirmed: number, trouble?: Reading['trouble']): Reading => ({
  slots: { confirmed },
  trouble,
  reason: '',
});
const UNREACHABLE: Reading = { slots: {}, trouble: 'unreachable', reason: 'ECONNREFUSED' };

/** A backend probed every two seconds while the pool's slot grows by five each time. */
function probed(lagSlotsMax = 16) {
  let health: HealthState = HEALTHY;
  let nowMs = 0;
  let slot = 1_000;
  return {
    /** Probes once, with the reading for the pool's slot; gives why it is out. */
    see(of: (slot: number) => Reading, isOtherChain = false, isNoneIn = false) {
      nowMs += 2_000;
      slot += 5;
      const measure: Measure = { slot, movedAtMs: nowMs, lagSlotsMax, nowMs, isOtherChain, isNoneIn };
      health = healthAfter(health, of(slot), measure);
      return health.excludedBecause;
    },
    health: () => health,
    nowMs: () => nowMs,
  };
}

describe('a backend', () => {
  test.each([
    ['unreachable', () => UNREACHABLE],
    ['unhealthy', (slot: number) => reading(slot, 'unhealthy')],
    ['lagging', (slot: number) => reading(slot - 17)],
  ] as const)('that is %s leaves at the second probe that says so, not at the first', (why, of) => {
    const { see } = probed();
    see((slot) => reading(slot));
    expect(see(of)).toBeUndefined();
    expect(see((slot) => reading(slot))).toBeUndefined();
    expect(see(of)).toBeUndefined();
    expect(see(of)).toBe(why);
  });

  test('that is of another chain leaves at once, and stays so while it does not answer', () => {
    const { see, health } = probed();
    see((slot) => reading(slot));
    expect(see((slot) => reading(slot), true)).toBe('of another chain');
    expect(see(() => UNREACHABLE, true)).toBe('of another chain');
    expect(health().reason).toBe('ECONNREFUSED');
    for (let i = 0; i < 2; i++) expect(see((slot) => reading(slot))).toBe('of another chain');
    expect(see((slot) => reading(slot))).toBeUndefined();
  });

  test('that stands still while the pool goes on is stalled, even within the allowed lag', () => {
    const { see } = probed(10_000);
    see(() => reading(1_005));
    for (let ms = 2_000; ms < 16_000; ms += 2_000) expect(see(() => reading(1_005))).toBeUndefined();
    see(() => reading(1_005));
    expect(see(() => reading(1_005))).toBe('stalled');
  });

  test('that stands still with the whole pool takes part: the cluster has halted', () => {
    let health: HealthState = HEALTHY;
    for (let nowMs = 0; nowMs < 100_000; nowMs += 2_000) {
      const measure = {
        slot: 500,
        movedAtMs: 0,
        lagSlotsMax: 16,
        nowMs,
        isOtherChain: false,
        isNoneIn: false,
      };
      health = healthAfter(health, reading(500), measure);
      expect(health.excludedBecause).toBeUndefined();
    }
  });

  test('comes back at the first good probe while no other is in', () => {
    const { see } = probed();
    for (let i = 0; i < 2; i++) see(() => UNREACHABLE);
    expect(see(() => UNREACHABLE, false, true)).toBe('unreachable');
    expect(see((slot) => reading(slot), false, true)).toBeUndefined();
  });

  test('at the edge of the allowed lag does not flap: it must come back to half of it', () => {
    const { see } = probed();
    see((slot) => reading(slot - 17));
    expect(see((slot) => reading(slot - 17))).toBe('lagging');
    for (let i = 0; i < 10; i++) expect(see((slot) => reading(slot - 15 - (i % 3)))).toBe('lagging');
    for (let i = 0; i < 2; i++) see((slot) => reading(slot - 8));
    expect(see((slot) => reading(slot - 8))).toBeUndefined();
    for (let i = 0; i < 10; i++) expect(see((slot) => reading(slot - 15))).toBeUndefined();
  });
});

describe('the slot that backends are measured by', () => {
  test.each([
    [[], 0],
    [[0, 0], 0],
    [[500], 500],
    [[500, 0], 500],
    [[500, 499], 500],
    [[500, 100], 500],
    [[500, 499, 480], 500],
    [[516, 500, 499], 516],
  ])('of %p is %p', (tips, slot) => expect(referenceSlot(tips, 16)).toBe(slot));

  test('of three or more is not that of one that stands alone: it may lie', () => {
    expect(referenceSlot([9_000_000, 500, 499], 16)).toBe(500);
    expect(referenceSlot([517, 500, 499], 16)).toBe(500);
  });

  test('of two is the higher one while that can be believed', () => {
    expect(referenceSlot([1_524, 500], 16)).toBe(1_524);
    expect(referenceSlot([1_525, 500], 16)).toBe(500);
  });
});
