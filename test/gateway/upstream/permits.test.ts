import { expect, test } from 'bun:test';
import { Backend, enterOneOf, type EnteringCall } from '../../../gateway/upstream/backend.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { backendOf } from './of.ts';

function full(name: string): Backend {
  const backend = backendOf({ name, connectionsMax: 1 });
  backend.enter(createVirtualClock().clock);
  return backend;
}

function enter(
  backends: readonly Backend[],
  call: Partial<EnteringCall> = {},
  clock = createVirtualClock().clock,
): Promise<Backend | undefined> {
  const signal = new AbortController().signal;
  return enterOneOf(backends, { accountId: 1, signal, ...call }, 100, clock);
}

/** The names of calls in the order in which they enter the only place of a backend, one after the other. */
async function orderOf(calls: readonly (readonly [name: string, call: Partial<EnteringCall>])[]) {
  const backend = full('a');
  const order: string[] = [];
  const all = calls.map(async ([name, call]) => {
    const entered = await enter([backend], call);
    order.push(name);
    entered?.leave();
  });
  backend.leave();
  await Promise.all(all);
  return order;
}

/** An answer that was not read for so long, of a reader who has stopped or reads slowly. */
type Held = Readonly<{ name: string; unreadMs: number; isStopped: boolean; readPerMs: number }>;

/** The answers of one account that are evicted for calls of others, one after the other, before the share is reached. */
async function evictedOf(held: readonly Held[]): Promise<string> {
  const { clock } = createVirtualClock();
  const { config, client } = backendOf({ connectionsMax: held.length });
  const evicted: string[] = [];
  const calls = () =>
    held.flatMap(({ name, unreadMs, ...rest }) => {
      const evict = () => {
        evicted.push(name);
        backend.leave();
      };
      const answer = { ...rest, unreadSinceMs: clock.monotonic() - unreadMs, isBehind: true, evict };
      return evicted.includes(name) ? [] : { accountId: 1, answer };
    });
  const backend: Backend = new Backend(config, { ...client, calls });
  for (let i = 0; i < held.length; i++) backend.enter(clock);
  for (let accountId = 2; evicted.length < held.length / 2; accountId++)
    await enter([backend], { accountId }, clock);
  return evicted.join('');
}

test('evicted are those whose readers have stopped, the longest unread first, and then slow readers, the least read for the time first', async () => {
  const stopped = { isStopped: true, readPerMs: 10 };
  const slow = { isStopped: false, unreadMs: 9_000 };
  const held = [
    { name: 'a', ...slow, readPerMs: 8 },
    { name: 'b', ...slow, readPerMs: 3 },
    { name: 'c', ...stopped, unreadMs: 2_000 },
    { name: 'd', ...slow, readPerMs: 5 },
    { name: 'e', ...stopped, unreadMs: 3_000, readPerMs: 900 },
    { name: 'f', ...slow, unreadMs: 500, readPerMs: 1 },
    { name: 'g', ...slow, readPerMs: 20 },
    { name: 'h', ...slow, readPerMs: 20 },
  ];
  expect(await evictedOf(held)).toBe('ecbd');
});

const inBatch = (batch: object, index: number) => ({
  batch,
  index,
  onWait: () => () => undefined,
  evict: () => false,
});

test('when none has room, a call waits until another leaves, says so, and has its place at once', async () => {
  const [a, b] = [full('a'), full('b')];
  const { clock, sleeping } = createVirtualClock();
  const told: string[] = [];
  const onWait = () => {
    told.push('waits');
    return () => void told.push('waits no longer');
  };
  const given = enter([a, b], { inBatch: { ...inBatch({}, 0), onWait } }, clock);
  expect([sleeping(), told]).toEqual([3, ['waits']]); // until its deadline, and until it is looked again at both
  b.leave();
  expect(b.hasRoom).toBe(false);
  expect(await given).toBe(b);
  expect([sleeping(), told]).toEqual([2, ['waits', 'waits no longer']]);
  b.leave();
  a.leave();
  expect([a.inFlight, b.inFlight]).toEqual([0, 0]);
});

test('B10 of many that wait each account has its turn, and of one account the first that came', async () => {
  const greedy = Array.from({ length: 50 }, (_, i) => `greedy ${i}`);
  const order = await orderOf([
    ...greedy.map((name) => [name, { accountId: 1 }] as const),
    ['modest 0', { accountId: 2 }],
    ['third 0', { accountId: 3 }],
    ['modest 1', { accountId: 2 }],
  ]);
  expect(order.slice(0, 6)).toEqual(['greedy 0', 'modest 0', 'third 0', 'greedy 1', 'modest 1', 'greedy 2']);
  expect(order.length).toBe(53);
  expect(order.filter((name) => name.startsWith('greedy'))).toEqual(greedy);
});

test('of a batch the earliest call takes the turn of any, and other requests of its account keep theirs', async () => {
  const [one, other] = [{}, {}];
  const order = await orderOf([
    ['one 3', { inBatch: inBatch(one, 3) }],
    ['single', {}],
    ['one 2', { inBatch: inBatch(one, 2) }],
    ['other 1', { inBatch: inBatch(other, 1) }],
    ['one 0', { inBatch: inBatch(one, 0) }],
  ]);
  expect(order).toEqual(['one 0', 'single', 'one 2', 'other 1', 'one 3']);
});

test('thousands that wait make none that comes slower: 30,000 took half a minute when each looked at all before it', async () => {
  const backend = full('a');
  const sinceMs = performance.now();
  for (let i = 0; i < 30_000; i++) void enter([backend]);
  expect(performance.now() - sinceMs).toBeLessThan(5_000);
});
