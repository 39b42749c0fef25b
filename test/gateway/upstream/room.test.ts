import { expect, test } from 'bun:test';
import { type Backend, permitAt, placeAt } from '../../../gateway/upstream/backend.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { backendOf } from './of.ts';

const never = new AbortController().signal;
const full = (name: string) => {
  return permitAt(backendOf({ name, connectionsMax: 1 }));
};
const namesOf = (place: Awaited<ReturnType<typeof placeAt>>) =>
  place && [place.backend, ...place.others].map(({ config }) => config.name);

function asking(clock = createVirtualClock().clock) {
  return (backends: readonly Backend[], accountId = 1, signal = never, waitMs = 100) =>
    placeAt(backends, accountId, waitMs, clock, signal);
}

test('a place at the first backend with room is given at once, with the others that have room', async () => {
  const [a, b, c] = [full('a').backend, backendOf({ name: 'b' }), backendOf({ name: 'c' })];
  expect(namesOf(await asking()([a, b, c]))).toEqual(['b', 'c']);
  expect([b.inFlight, c.inFlight]).toEqual([1, 0]);
});

test('when none has room, a call waits until another leaves, and has its place at once', async () => {
  const [a, b] = [full('a'), full('b')];
  const { clock, sleeping } = createVirtualClock();
  const given = asking(clock)([a.backend, b.backend]);
  expect(sleeping()).toBe(1);
  b.leave();
  expect(b.backend.hasRoom).toBe(false);
  const place = await given;
  expect([namesOf(place), sleeping()]).toEqual([['b'], 0]);
  place?.leave();
  expect(b.backend.inFlight).toBe(0);
  a.leave();
  expect(a.backend.inFlight).toBe(0);
});

test('it gives up when the time is over, and when the caller leaves, and then takes no place', async () => {
  const { clock, advance } = createVirtualClock();
  const a = full('a');
  const late = asking(clock)([a.backend]);
  advance(100);
  expect(await late).toBeUndefined();
  const caller = new AbortController();
  const left = asking(clock)([a.backend], 1, caller.signal);
  caller.abort();
  expect(await left).toBeUndefined();
  a.leave();
  expect(a.backend.inFlight).toBe(0);
});

test('without any backend, or for a caller who has left, there is nothing to wait for', async () => {
  expect(await asking()([])).toBeUndefined();
  expect(await asking()([full('a').backend], 1, AbortSignal.abort())).toBeUndefined();
});

test('B10 of many that wait each account has its turn, and of one account the first that came', async () => {
  const { backend, leave } = full('a');
  const order: string[] = [];
  const wait = async (accountId: number, name: string) => {
    const place = await asking()([backend], accountId);
    order.push(name);
    place?.leave();
  };
  const all = [
    ...Array.from({ length: 50 }, (_, i) => wait(1, `greedy ${i}`)),
    wait(2, 'modest 0'),
    wait(3, 'third 0'),
    wait(2, 'modest 1'),
  ];
  leave();
  await Promise.all(all);
  expect(order.slice(0, 6)).toEqual(['greedy 0', 'modest 0', 'third 0', 'greedy 1', 'modest 1', 'greedy 2']);
  expect(order.length).toBe(53);
  expect(order.filter((name) => name.startsWith('greedy'))).toEqual(
    Array.from({ length: 50 }, (_, i) => `greedy ${i}`),
  );
});

test('one that found a place elsewhere, or left, is passed over', async () => {
  const [a, b] = [full('a'), full('b')];
  const caller = new AbortController();
  const [first, gone, last] = [
    asking()([a.backend, b.backend], 1),
    asking()([a.backend], 2, caller.signal),
    asking()([a.backend], 3),
  ];
  b.leave();
  expect(namesOf(await first)).toEqual(['b']);
  caller.abort();
  a.leave();
  expect([await gone, namesOf(await last)]).toEqual([undefined, ['a']]);
});
