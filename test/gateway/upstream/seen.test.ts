import { expect, test } from 'bun:test';
import { createSeen } from '../../../gateway/upstream/selection.ts';
import { createVirtualClock } from '../virtual-clock.ts';

test('the highest slot is remembered by account and by commitment', () => {
  const seen = createSeen(createVirtualClock().clock);
  seen.note(1, 'processed', 100);
  seen.note(1, 'processed', 90);
  seen.note(1, 'finalized', 60);
  seen.note(2, 'processed', 50);
  expect(seen.highest(1, 'processed')).toBe(100);
  expect(seen.highest(1, 'finalized')).toBe(60);
  expect(seen.highest(1, 'confirmed')).toBe(0);
  expect(seen.highest(2, 'processed')).toBe(50);
  expect(seen.highest(3, 'processed')).toBe(0);
});

test('it is kept for a minute after the last answer, and forgotten within two', () => {
  const { clock, advance } = createVirtualClock();
  const seen = createSeen(clock);
  seen.note(1, 'processed', 100);
  advance(59_000);
  expect(seen.highest(1, 'processed')).toBe(100);
  seen.note(1, 'processed', 101);
  advance(59_000);
  expect(seen.highest(1, 'processed')).toBe(101);
  advance(70_000);
  expect(seen.highest(1, 'processed')).toBe(0);
});

test('after a long silence nothing is left over', () => {
  const { clock, advance } = createVirtualClock();
  const seen = createSeen(clock);
  seen.note(1, 'processed', 100);
  advance(600_000);
  expect(seen.highest(1, 'processed')).toBe(0);
});

test('one absurd slot is forgotten within two minutes, however active the account is, at every commitment', () => {
  const { clock, advance } = createVirtualClock();
  const seen = createSeen(clock);
  seen.note(1, 'processed', 1e14);
  seen.note(1, 'finalized', 1e14);
  for (let slot = 100; slot < 112; slot++) {
    advance(10_000);
    seen.note(1, 'processed', slot);
  }
  expect([seen.highest(1, 'processed'), seen.highest(1, 'finalized')]).toEqual([111, 0]);
});
