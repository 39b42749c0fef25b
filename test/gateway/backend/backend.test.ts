import { describe, expect, test } from 'bun:test';
import { inOrder } from '../../../gateway/backend/backend.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { backendOf } from './of.ts';

const three = () => [backendOf({ name: 'a' }), backendOf({ name: 'b' }), backendOf({ name: 'c' })] as const;
const names = (...args: Parameters<typeof inOrder>) => inOrder(...args).map(({ config }) => config.name);

describe('the order of backends', () => {
  test('is that of the config while none fails', () => {
    expect(names(three(), 100, createVirtualClock().clock)).toEqual(['a', 'b', 'c']);
  });

  test('puts one that failed last for a second, and the others stay as they are', () => {
    const { clock, advance } = createVirtualClock();
    const [a, b, c] = three();
    a.markFailed(clock);
    expect(names([a, b, c], 100, clock)).toEqual(['b', 'c', 'a']);
    advance(999);
    expect(a.isFailing(clock)).toBe(true);
    expect(names([a, b, c], 100, clock)).toEqual(['b', 'c', 'a']);
    advance(1);
    expect(a.isFailing(clock)).toBe(false);
    expect(names([a, b, c], 100, clock)).toEqual(['a', 'b', 'c']);
  });

  test('keeps all of them when all fail: a backend that failed is better than none', () => {
    const { clock } = createVirtualClock();
    const all = three();
    for (const backend of all) backend.markFailed(clock);
    expect(names(all, 100, clock)).toEqual(['a', 'b', 'c']);
  });

  test('a second failure begins the second again', () => {
    const { clock, advance } = createVirtualClock();
    const [a, b] = three();
    a.markFailed(clock);
    advance(900);
    a.markFailed(clock);
    advance(900);
    expect(names([a, b], 100, clock)).toEqual(['b', 'a']);
  });

  test('leaves out one whose bound is below the body', () => {
    const small = backendOf({ name: 'small', bodyBytesMax: 1_024 });
    const large = backendOf({ name: 'large' });
    const { clock } = createVirtualClock();
    expect(names([small, large], 1_024, clock)).toEqual(['small', 'large']);
    expect(names([small, large], 1_025, clock)).toEqual(['large']);
  });

  test('a backend has room for as many calls as its config says, until one leaves', () => {
    const tight = backendOf({ name: 'tight', connectionsMax: 2 });
    const leave = tight.enter();
    expect(tight.hasRoom).toBe(true);
    tight.enter();
    expect([tight.inFlight, tight.hasRoom]).toEqual([2, false]);
    leave();
    leave();
    expect([tight.inFlight, tight.hasRoom]).toEqual([1, true]);
  });

  test('does not change the list it was given', () => {
    const { clock } = createVirtualClock();
    const all = three();
    all[0].markFailed(clock);
    inOrder(all, 100, clock);
    expect(all.map(({ config }) => config.name)).toEqual(['a', 'b', 'c']);
  });
});

test('a fresh backend is not failing, even when the clock has just begun', () => {
  expect(backendOf().isFailing(createVirtualClock(0).clock)).toBe(false);
});
