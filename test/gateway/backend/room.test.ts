import { expect, test } from 'bun:test';
import { withRoom } from '../../../gateway/backend/room.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { backendOf } from './of.ts';

const never = new AbortController().signal;
const full = (name: string) => {
  const backend = backendOf({ name, connectionsMax: 1 });
  return { backend, leave: backend.enter() };
};

test('backends with room are given at once, in their order', async () => {
  const [a, b, c] = [backendOf({ name: 'a' }), full('b').backend, backendOf({ name: 'c' })];
  expect(await withRoom([a, b, c], 100, createVirtualClock().clock, never)).toEqual([a, c]);
});

test('when none has room, a call waits until another leaves', async () => {
  const [a, b] = [full('a'), full('b')];
  const { clock, sleeping } = createVirtualClock();
  const given = withRoom([a.backend, b.backend], 100, clock, never);
  await new Promise(setImmediate);
  expect(sleeping()).toBe(1);
  b.leave();
  expect(await given).toEqual([b.backend]);
  expect(sleeping()).toBe(0);
});

test('it gives up when the time is over, and when the caller leaves', async () => {
  const { clock, advance } = createVirtualClock();
  const late = withRoom([full('a').backend], 100, clock, never);
  advance(100);
  expect(await late).toEqual([]);
  const caller = new AbortController();
  const left = withRoom([full('a').backend], 100, clock, caller.signal);
  caller.abort();
  expect(await left).toEqual([]);
});

test('without any backend there is nothing to wait for', async () => {
  expect(await withRoom([], 100, createVirtualClock().clock, never)).toEqual([]);
});
