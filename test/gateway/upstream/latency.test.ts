import { describe, expect, test } from 'bun:test';
import { type Backend, HEALTHY, numberOf, preference } from '../../../gateway/upstream/backend.ts';
import type { Lane } from '../../../shared/config/profiles.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { ACCOUNT_ABC, backendOf, forwardOf } from './of.ts';

/** Backends a, b and c, preferred in this order, whose latencies are compared four times a second. */
function pooled() {
  const { clock, advance } = createVirtualClock();
  const [a, b, c] = ['a', 'b', 'c'].map((name) => backendOf({ name, clock })) as [Backend, Backend, Backend]; // map forgets how many
  const changes: string[] = [];
  const { pool } = forwardOf([a, b, c], clock, {
    onSlowness: ({ config }, change) => void changes.push(`${config.name}: ${change}`),
  });
  const needIn = (lane: Lane, slotMin = 0) =>
    ({ accountId: ACCOUNT_ABC, commitment: 'confirmed', slotMin, lane }) as const;
  return {
    pool,
    a,
    b,
    c,
    clock,
    changes,
    needIn,
    preferred: (able: readonly Backend[] = [a, b, c]) => pool.preferred(able, needIn('state'))?.config.name,
    order: (lane: Lane = 'state', slotMin = 0) =>
      pool
        .inOrder([a, b, c], needIn(lane, slotMin))
        .map(({ config }) => config.name)
        .join(''),
    /** Lets `ms` go by, with what `each` does every quarter of a second. */
    pass(ms: number, each: () => void = () => undefined) {
      for (let passed = 0; passed < ms; passed += 250) {
        advance(250);
        each();
        pool.compareLatencies();
      }
    },
  };
}

function begins(backend: Backend, ms: number, times = 1): void {
  for (let i = 0; i < times; i++) backend.latencies.state?.note(ms);
}

/** A pool whose backend a is slow and b is fast. */
function slowed() {
  const all = pooled();
  begins(all.a, 3_000, 5);
  begins(all.b, 2, 5);
  all.pool.compareLatencies();
  return all;
}

describe('a backend is slow', () => {
  test.each([
    ['one caller who waits for each of its answers', 3_000, 1],
    ['many callers', 250, 25],
  ])('within 15 s, however many fast answers it gave before, with %s', (_, everyMs, times) => {
    const { a, b, changes, pass, clock } = pooled();
    pass(10_000, () => {
      begins(a, 2, 2_000);
      begins(b, 2);
    });
    let dueMs = clock.monotonic() + 3_000;
    pass(15_000, () => {
      for (; dueMs <= clock.monotonic(); dueMs += everyMs) begins(a, 3_000, times);
      begins(b, 2);
    });
    expect(changes).toEqual(['a: slow']);
  });

  test.each([
    ['with a median of 120 ms beside 2', 120, 2, true],
    ['not with 85 ms beside 2', 85, 2, false],
    ['with 700 ms beside 100', 700, 100, true],
    ['not with 400 ms beside 100', 400, 100, false],
  ])('%s', (_, slowMs, bestMs, isSlow) => {
    const { a, b, pool } = pooled();
    begins(a, slowMs, 9);
    begins(b, bestMs, 9);
    pool.compareLatencies();
    expect(a.latencies.state?.isSlow).toBe(isSlow);
    expect(b.latencies.state?.isSlow).toBe(false);
  });

  test('not by fewer than four calls, and not by most of them being fast', () => {
    const { a, b, c, changes, pool } = pooled();
    begins(a, 3_000, 3);
    begins(b, 2, 5);
    begins(c, 3_000, 20);
    begins(c, 2, 21);
    pool.compareLatencies();
    expect(changes).toEqual([]);
  });

  test('by what did not begin at all, when it was waited for so long', () => {
    const { a, b, changes, pool } = pooled();
    begins(b, 2, 5);
    for (let i = 0; i < 5; i++) a.latencies.state?.note(99, false);
    pool.compareLatencies();
    expect(changes).toEqual([]);
    for (let i = 0; i < 5; i++) a.latencies.state?.note(10_000, false);
    pool.compareLatencies();
    expect(changes).toEqual(['a: slow']);
  });

  test('beside one without calls that answers probes fast, and not beside one that nothing is known of', () => {
    const { a, b, changes, pool } = pooled();
    begins(a, 3_000, 9);
    pool.compareLatencies();
    expect(changes).toEqual([]);
    b.probeTookMs = 2;
    pool.compareLatencies();
    expect(changes).toEqual(['a: slow']);
  });
});

/** Accounts that prefer a to b and c. */
const OF_A = Array.from({ length: 100 }, (_, id) => id).filter((id) => {
  const [a = 0, ...others] = ['a', 'b', 'c'].map((name) => preference(id, numberOf(name)));
  return others.every((other) => other < a);
});

describe('G13 calls that take long wherever they are answered', () => {
  /** Lets accounts that prefer a call each quarter of a second; gives the calls, and those that others answered. */
  function called(accounts: readonly number[], msAt: (backend: Backend, account: number) => number) {
    const all = pooled();
    const { a, b, c, pool, pass } = all;
    const able = [a, b, c];
    const count = { calls: 0, elsewhere: 0 };
    const load = (ms: number) =>
      pass(ms, () => {
        begins(b, 2, 40);
        begins(c, 2, 40);
        for (const accountId of accounts) {
          const need = { ...all.needIn('state'), accountId };
          const backend = pool.preferred(able, need) ?? b;
          pool.noteTime(backend, able, need, msAt(backend, accountId));
          count.calls++;
          if (backend !== a) count.elsewhere++;
        }
      });
    return { ...all, load, count };
  }

  test.each([
    ['of two accounts', OF_A.slice(0, 2), 250],
    ['of most of many', OF_A.slice(0, 20), 400],
  ])('%s keep no backend out, but for a few seconds in five minutes', (_, accounts, heavyMs) => {
    const heavy = new Set(accounts.slice(0, Math.ceil(accounts.length * 0.7)));
    const { load, count, changes } = called(accounts, (__, account) => (heavy.has(account) ? heavyMs : 2));
    load(10 * 60_000);
    expect(count.elsewhere / count.calls).toBeLessThan(0.05);
    expect(changes.at(-1)).toBe('a: excused');
    expect(changes.length).toBeLessThanOrEqual(6);
  });

  test('do not hide that a backend is slow, neither before nor after it was found out that they are heavy', () => {
    let slowMs = 250;
    const { a, load, count, changes } = called(OF_A.slice(0, 2), (backend) => (backend === a ? slowMs : 250));
    load(60_000);
    expect(changes).toEqual(['a: slow', 'a: excused']);
    slowMs = 3_000;
    load(15_000);
    expect(changes).toEqual(['a: slow', 'a: excused', 'a: slow']);
    count.calls = count.elsewhere = 0;
    load(60_000);
    expect(1 - count.elsewhere / count.calls).toBeLessThanOrEqual(0.05);
    expect(changes.length).toBe(3);
    slowMs = 250;
    load(45_000);
    expect(changes.at(-1)).toBe('a: recovered');
  });
});

describe('what is slow', () => {
  test('is asked for light calls after those that are well or behind, and before those that are left out', () => {
    const { a, b, c, order } = slowed();
    expect(order()).toBe('bca');
    [a.slots.tip.confirmed, b.slots.tip.confirmed, c.slots.tip.confirmed] = [110, 100, 90];
    expect(order('state', 105)).toBe('bca');
    b.health = { ...HEALTHY, excludedBecause: 'lagging' };
    c.health = { ...HEALTHY, excludedBecause: 'unreachable' };
    expect(order()).toBe('abc');
  });

  test('is tried by one call in twenty at most, and at most each five seconds', () => {
    for (const perQuarter of [1, 4, 500]) {
      const { a, b, preferred, pass } = slowed();
      let [calls, samples] = [0, 0];
      pass(60_000, () => {
        begins(b, 2, 5);
        for (let i = 0; i < perQuarter; i++) {
          calls++;
          if (preferred() !== 'a') continue;
          samples++;
          begins(a, 3_000);
        }
      });
      expect(samples).toBeWithin(8, 13);
      expect(samples / calls).toBeLessThanOrEqual(0.05);
    }
  });

  test('is no longer when there is none to compare it with', () => {
    const { a, b, c, preferred, pass, changes } = slowed();
    b.health = c.health = { ...HEALTHY, excludedBecause: 'unreachable' };
    begins(a, 3_000, 3);
    pass(250);
    begins(a, 3_000, 3);
    pass(250);
    expect(changes).toEqual(['a: slow', 'a: recovered']);
    pass(10_000);
    expect(preferred()).toBe('a');
  });
});
