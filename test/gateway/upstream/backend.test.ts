import { describe, expect, test } from 'bun:test';
import { createVirtualClock } from '../virtual-clock.ts';
import { backendOf } from './of.ts';

test('a fresh backend is not failing, even when the clock has just begun', () => {
  expect(backendOf().isFailing(createVirtualClock(0).clock)).toBe(false);
});

test('a backend has room for as many calls as its config says, until one leaves', () => {
  const tight = backendOf({ name: 'tight', connectionsMax: 2 });
  tight.enter(createVirtualClock().clock);
  expect(tight.hasRoom).toBe(true);
  tight.enter(createVirtualClock().clock);
  expect([tight.inFlight, tight.hasRoom]).toEqual([2, false]);
  tight.leave();
  expect([tight.inFlight, tight.hasRoom]).toEqual([1, true]);
});

describe('a backend that failed', () => {
  test('is failing for a second, and for twice as long each time it fails again, at most 16 s', () => {
    const { clock, advance } = createVirtualClock();
    const backend = backendOf();
    for (const seconds of [1, 2, 4, 8, 16, 16]) {
      backend.markFailed(clock);
      advance(seconds * 1_000 - 1);
      expect(backend.isFailing(clock)).toBe(true);
      advance(1);
      expect(backend.isFailing(clock)).toBe(false);
    }
  });

  test('counts calls that failed together as one failure', () => {
    const { clock, advance } = createVirtualClock();
    const backend = backendOf();
    for (let i = 0; i < 50; i++) backend.markFailed(clock);
    advance(1_000);
    expect(backend.isFailing(clock)).toBe(false);
  });

  test('is tried by one call afterwards, while the others keep away, until that one knows', () => {
    const { clock, advance } = createVirtualClock();
    const backend = backendOf();
    backend.markFailed(clock);
    advance(1_000);
    expect(backend.isFailing(clock)).toBe(false);
    backend.enter(clock);
    expect(backend.isFailing(clock)).toBe(true);
    backend.endProbation();
    expect(backend.isFailing(clock)).toBe(false);
    backend.enter(clock);
    backend.markWell();
    expect(backend.isFailing(clock)).toBe(false);
    backend.enter(clock);
    expect(backend.isFailing(clock)).toBe(false);
  });

  test('is not kept away from for longer than three seconds by a call that takes its time', () => {
    const { clock, advance } = createVirtualClock();
    const backend = backendOf();
    backend.markFailed(clock);
    advance(1_000);
    backend.enter(clock);
    expect(backend.isFailing(clock)).toBe(true);
    advance(2_999);
    expect(backend.isFailing(clock)).toBe(true);
    advance(1);
    expect(backend.isFailing(clock)).toBe(false);
  });

  test('begins from one second again after an answer', () => {
    const { clock, advance } = createVirtualClock();
    const backend = backendOf();
    backend.markFailed(clock);
    advance(1_000);
    backend.markFailed(clock);
    backend.markWell();
    backend.markFailed(clock);
    advance(1_000);
    expect(backend.isFailing(clock)).toBe(false);
  });
});
