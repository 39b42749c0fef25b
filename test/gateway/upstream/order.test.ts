import { describe, expect, test } from 'bun:test';
import { type Backend, HEALTHY } from '../../../gateway/upstream/backend.ts';
import { ACCOUNT_ABC, backendOf, forwardOf } from './of.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const three = () => [backendOf({ name: 'a' }), backendOf({ name: 'b' }), backendOf({ name: 'c' })] as const;

function names(all: readonly Backend[], clock = createVirtualClock().clock, slotMin = 0): string {
  return forwardOf(all, clock)
    .pool.inOrder(all, { accountId: ACCOUNT_ABC, commitment: 'confirmed', slotMin })
    .map(({ config }) => config.name)
    .join(' ');
}

describe('the order in which backends are asked', () => {
  test("is the account's, wherever they stand in the config", () => {
    const [a, b, c] = three();
    expect(names([a, b, c])).toBe('a b c');
    expect(names([c, b, a])).toBe('a b c');
  });

  test('puts one that failed last until its penalty is over, and the others stay as they are', () => {
    const { clock, advance } = createVirtualClock();
    const [a, b, c] = three();
    a.markFailed(clock);
    expect(names([a, b, c], clock)).toBe('b c a');
    advance(1_000);
    expect(names([a, b, c], clock)).toBe('a b c');
  });

  test('keeps all of them when all fail: a backend that failed is better than none', () => {
    const { clock } = createVirtualClock();
    const all = three();
    for (const backend of all) backend.markFailed(clock);
    expect(names(all, clock)).toBe('a b c');
  });

  test('puts those that are known to be behind the wanted slot after the others, the newest of them first', () => {
    const [a, b, c] = three();
    [a, b, c].forEach((backend, i) => (backend.slots.tip.confirmed = [300, 310, 320][i] ?? 0));
    const { clock } = createVirtualClock();
    expect(names([a, b, c], clock, 300)).toBe('a b c');
    expect(names([a, b, c], clock, 301)).toBe('b c a');
    expect(names([a, b, c], clock, 315)).toBe('c b a');
    expect(names([a, b, c], clock, 400)).toBe('c b a');
  });

  test('takes one whose slot is not known for good', () => {
    const [a, b, c] = three();
    b.slots.tip.confirmed = 310;
    expect(names([a, b, c], createVirtualClock().clock, 300)).toBe('a b c');
  });

  test('puts one that is left out last: late before failing, and of the late ones the newest first', () => {
    const [a, b, c] = three();
    a.health = { ...HEALTHY, excludedBecause: 'unreachable' };
    b.health = { ...HEALTHY, excludedBecause: 'lagging' };
    expect(names([a, b, c])).toBe('c b a');
    c.health = { ...HEALTHY, excludedBecause: 'stalled' };
    [b.slots.tip.confirmed, c.slots.tip.confirmed] = [100, 90];
    expect(names([a, b, c])).toBe('b c a');
    c.slots.tip.confirmed = 110;
    expect(names([a, b, c])).toBe('c b a');
  });

  test('gives one that came back its callers little by little', () => {
    const clock = createVirtualClock();
    const [a, b] = three();
    a.health = { ...HEALTHY, backAtMs: clock.clock.monotonic() };
    const { pool } = forwardOf([a, b], clock.clock);
    const callers = () => {
      const firsts = [...Array(1_000).keys()].map(
        (id) => pool.inOrder([a, b], { accountId: id, commitment: 'confirmed', slotMin: 0 })[0],
      );
      return firsts.filter((first) => first === a).length;
    };
    expect(callers()).toBe(0);
    clock.advance(5_000);
    expect(callers()).toBeWithin(1, 499);
    clock.advance(5_000);
    expect(callers()).toBeWithin(450, 550);
    expect(names([a, b], clock.clock)).toBe('a b');
  });

  test('asks a backend without the commitment processed last for it', () => {
    const cloudbreak = backendOf({ name: 'a', profile: 'cloudbreak' });
    const agave = backendOf({ name: 'b' });
    const { clock } = createVirtualClock();
    const { pool } = forwardOf([], clock);
    const at = (commitment: 'processed' | 'confirmed') =>
      pool.inOrder([cloudbreak, agave], { accountId: ACCOUNT_ABC, commitment, slotMin: 0 })[0]?.config.name;
    expect([at('confirmed'), at('processed')]).toEqual(['a', 'b']);
  });

  test('does not change the list it was given', () => {
    const { clock } = createVirtualClock();
    const all = three();
    all[0].markFailed(clock);
    names(all, clock);
    expect(all.map(({ config }) => config.name)).toEqual(['a', 'b', 'c']);
  });
});
