import { describe, expect, test } from 'bun:test';
import { createVirtualClock } from '../virtual-clock.ts';
import { backendOf } from './of.ts';
import { followsTip, isLiveNode, numberOf, preference } from '../../../gateway/upstream/backend.ts';

test('a fresh backend is not failing, even when the clock has just begun', () => {
  expect(backendOf().isFailing(createVirtualClock(0).clock)).toBe(false);
});

describe('a backend that failed', () => {
  /** One that has failed, when its penalty of a second is over. */
  function punished() {
    const { clock, advance } = createVirtualClock();
    const backend = backendOf();
    for (let i = 0; i < 50; i++) backend.markFailed(clock); // calls that fail together count as one
    advance(1_000);
    return { clock, advance, backend, isFailing: () => backend.isFailing(clock) };
  }

  test('is failing for a second, and for twice as long each time it fails again, at most 16 s', () => {
    const { clock, advance, backend, isFailing } = punished();
    for (const seconds of [2, 4, 8, 16, 16]) {
      expect(isFailing()).toBe(false);
      backend.markFailed(clock);
      advance(seconds * 1_000 - 1);
      expect(isFailing()).toBe(true);
      advance(1);
    }
    backend.markWell();
    backend.markFailed(clock);
    advance(1_000);
    expect(isFailing()).toBe(false);
  });

  test('is tried by one call afterwards, while the others keep away, until that one knows', () => {
    const { clock, backend, isFailing } = punished();
    const seen = [() => backend.endProbation(), () => backend.markWell()].map((end) => {
      backend.enter(clock);
      const before = isFailing();
      end();
      return [before, isFailing()];
    });
    backend.enter(clock);
    expect([...seen, isFailing()]).toEqual([[true, false], [true, false], false]);
  });

  test('is not kept away from for longer than three seconds by a call that takes its time', () => {
    const { clock, advance, backend, isFailing } = punished();
    backend.enter(clock);
    advance(2_999);
    expect(isFailing()).toBe(true);
    advance(1);
    expect(isFailing()).toBe(false);
  });
});

const NAMES = ['agave-1', 'agave-2', 'agave-3', 'agave-4'];
const ACCOUNTS = Array.from({ length: 4_000 }, (_, i) => i + 1);
const favourite = (account: number, names: readonly string[]) =>
  names.toSorted((a, b) => preference(account, numberOf(b)) - preference(account, numberOf(a)))[0];

describe('the preference of accounts for backends', () => {
  test('spreads the accounts of a backend that left evenly over the others, and moves nobody else', () => {
    const left = NAMES.slice(1);
    const moved = new Map<string | undefined, number>();
    for (const account of ACCOUNTS) {
      const [before, after] = [favourite(account, NAMES), favourite(account, left)];
      if (before !== NAMES[0]) expect(after).toBe(before);
      else moved.set(after, (moved.get(after) ?? 0) + 1);
    }
    const all = [...moved.values()].reduce((sum, each) => sum + each, 0);
    for (const name of left) expect(Math.abs((moved.get(name) ?? 0) / all - 1 / 3)).toBeLessThan(0.06);
  });
});

test.each([
  ['agave', ['state', 'scan', 'archive', 'send'], true, true],
  ['agave', ['state'], true, true],
  ['agave', ['send'], true, false],
  ['agave', ['scan', 'archive'], true, false],
  ['agave', ['archive'], false, false],
  ['cloudbreak', ['state', 'scan'], true, true],
  ['old-faithful', ['archive'], false, false],
  ['old-faithful', ['state', 'archive'], false, false],
  ['superbank', ['archive', 'state'], false, false],
  ['das', ['assets', 'state', 'scan'], false, false],
] as const)(
  '%s with the lanes %p follows the tip: %p, is a live node: %p',
  (profile, lanes, follows, live) => {
    expect([followsTip({ profile, lanes }), isLiveNode({ profile, lanes })]).toEqual([follows, live]);
  },
);
