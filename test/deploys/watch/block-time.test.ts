import { describe, expect, test } from 'bun:test';
import { createBlockTimes, createFill } from '../../../deploys/watch/block-time.ts';
import type { CallOutcome, RpcBackend } from '../../../deploys/watch/rpc.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';

const { signal } = new AbortController();
const time = (unixSeconds: unknown): CallOutcome => ({ kind: 'result', result: unixSeconds });
const error = (code: number): CallOutcome => ({ kind: 'error', code });
const failed = (isOverRate = false): CallOutcome => ({ kind: 'failed', reason: 'x', isOverRate });

/** Block times over scripted backends; `asked` has the slots in the order they were asked for. */
function start(...answers: ((slot: number) => CallOutcome)[]) {
  const clock = createVirtualClock();
  const stored = new Map<bigint, number>();
  const asked: number[] = [];
  const backends = answers.map((answer, i) => ({
    name: `backend ${i}`,
    call: async (_: string, [slot]: readonly unknown[]) => {
      if (i === 0) asked.push(Number(slot));
      return answer(Number(slot));
    },
  }));
  const store = {
    find: (slot: bigint) => stored.get(slot),
    save: (slot: bigint, unixSeconds: number) => void stored.set(slot, unixSeconds),
  };
  return { clock, stored, asked, ...createBlockTimes(backends, store, clock) };
}

test('a time is looked up once, remembered and stored', async () => {
  const { fill, timeOf, stored, asked } = start((slot) => time(slot + 1_000));
  expect(timeOf(5n)).toBeUndefined();
  await fill([5n], signal);
  await fill([5n], signal);
  expect([timeOf(5n), stored.get(5n), asked]).toEqual([1_005, 1_005, [5]]);
});

test('a stored time is not looked up again after a restart', async () => {
  const { fill, timeOf, stored, asked } = start(() => time(1));
  stored.set(5n, 77);
  await fill([5n], signal);
  expect([timeOf(5n), asked]).toEqual([77, []]);
});

test('the newest deploys come first, and programs deployed together are asked for once', async () => {
  const { fill, asked } = start(() => time(1));
  await fill([5n, 9n, 7n, 9n], signal);
  expect(asked).toEqual([9, 7, 5]);
});

test('memory holds the slots of the last reading alone', async () => {
  const { fill, timeOf } = start(() => time(1));
  await fill([5n], signal);
  await fill([6n], signal);
  expect([timeOf(5n), timeOf(6n)]).toEqual([undefined, 1]);
});

test.each([
  ['null', time(null)],
  ['skipped', error(-32007)],
  ['skipped in long-term storage', error(-32009)],
  ['cleaned up', error(-32001)],
  ['not available yet', error(-32014)],
  ['a text', time('1700000000')],
  ['a fraction', time(1.5)],
  ['a time before 1970', time(-1)],
  ['a year of five digits', time(253_402_300_800)],
])('an answer of "%s" is no time, and is asked for again 5 s later', async (_, answer) => {
  let current = answer;
  const { fill, timeOf, clock, asked } = start(() => current);
  await fill([5n], signal);
  expect(timeOf(5n)).toBeUndefined();
  await fill([5n], signal);
  expect(asked).toHaveLength(1);
  current = time(1_700_000_000);
  await clock.advance(4_999);
  await fill([5n], signal);
  expect(timeOf(5n)).toBeUndefined();
  await clock.advance(1);
  await fill([5n], signal);
  expect(timeOf(5n)).toBe(1_700_000_000);
});

test('a slot that stays without a time is asked for ever more rarely, at least once in two hours', async () => {
  const { fill, clock, asked } = start(() => time(null));
  for (let minute = 0; minute < 24 * 60; minute++) {
    await fill([5n], signal);
    await clock.advance(60_000);
  }
  expect(asked.length).toBeGreaterThan(20);
  expect(asked.length).toBeLessThan(40);
});

test('a time that the first backend has not is asked of the next', async () => {
  const { fill, timeOf } = start(
    () => error(-32001),
    () => time(7),
  );
  await fill([5n], signal);
  expect(timeOf(5n)).toBe(7);
});

test('backends that are away cost three calls a turn, and no slot is held against them', async () => {
  let current = failed();
  const { fill, timeOf, asked } = start(() => current);
  const slots = Array.from({ length: 20 }, (_, i) => BigInt(i));
  await fill(slots, signal);
  expect(asked).toHaveLength(3);
  current = time(1);
  await fill(slots, signal);
  expect(slots.every((slot) => timeOf(slot) === 1)).toBe(true);
});

test('a refusal for the rate is waited out, and the same slot is asked for again', async () => {
  let tokens = 2;
  const { fill, timeOf, clock } = start(() => (tokens-- > 0 ? time(1) : failed(true)));
  const done = fill([1n, 2n, 3n], signal);
  await clock.advance(999);
  expect([timeOf(3n), timeOf(2n), timeOf(1n)]).toEqual([1, 1, undefined]);
  tokens = 1;
  await clock.advance(1);
  await done;
  expect(timeOf(1n)).toBe(1);
});

test('one turn makes at most 150 calls; the rest follow in the next', async () => {
  const { fill, asked } = start(() => time(1));
  const slots = Array.from({ length: 200 }, (_, i) => BigInt(i));
  await fill(slots, signal);
  expect(asked).toHaveLength(150);
  await fill(slots, signal);
  expect(new Set(asked).size).toBe(200);
});

test('an aborted turn ends without recording what came too late', async () => {
  const over = new AbortController();
  const { fill, stored, asked } = start((slot) => {
    over.abort();
    return time(slot);
  });
  await fill([1n, 2n], over.signal);
  expect([asked.length, stored.size]).toEqual([1, 0]);
});

test('what was forgotten is looked up again', async () => {
  const { fill, forget, timeOf, stored, asked } = start((slot) => time(slot + asked.length));
  await fill([5n], signal);
  stored.clear();
  forget();
  expect(timeOf(5n)).toBeUndefined();
  await fill([5n], signal);
  expect([timeOf(5n), asked]).toEqual([7, [5, 5]]);
});

test('a slot that had no time is asked for at once on another chain', async () => {
  const { fill, forget, asked } = start(() => error(-32007));
  await fill([5n], signal);
  await fill([5n], signal);
  expect(asked).toEqual([5]);
  forget();
  await fill([5n], signal);
  expect(asked).toEqual([5, 5]);
});

const NONE: CallOutcome = { kind: 'error', code: -32007 };

/** A fill over a backend that knows `times`, and events that wait for `awaited`. */
function startFill(shown: bigint[], awaited: bigint[], sinceMs = START_MS) {
  const clock = createVirtualClock();
  const times = new Map<bigint, number>();
  const asked: [slot: bigint, atMs: number][] = [];
  const stored = new Map<bigint, number>();
  let isAway = false;
  const backend: RpcBackend = {
    name: 'rpc',
    call: async (_, [slot]) => {
      asked.push([BigInt(Number(slot)), clock.monotonic()]);
      if (isAway) return { kind: 'failed', reason: 'away', isOverRate: false };
      const result = times.get(BigInt(Number(slot)));
      return result === undefined ? NONE : { kind: 'result', result };
    },
  };
  const store = {
    find: (slot: bigint) => stored.get(slot),
    save: (slot: bigint, at: number) => void stored.set(slot, at),
  };
  const blockTimes = createBlockTimes([backend], store, clock);
  const fill = createFill({ blockTimes, awaited: () => awaited.map((slot) => ({ slot, sinceMs })), clock });
  const programs = new Map(
    shown.map((slot) => [addressOf(`${slot}`), { status: 'frozen', deploySlot: slot } as const]),
  );
  const over = new AbortController();
  let isOver = false;
  const filling = fill({ contextSlot: 100n, programs }, over.signal).then(() => void (isOver = true));
  return { clock, times, asked, stored, fail: () => (isAway = true), isOver: () => isOver, over, filling };
}

describe('block times', () => {
  test('that events wait for are asked for first, and again within seconds', async () => {
    const { clock, asked, times, stored, isOver } = startFill([9n, 8n, 5n], [5n]);
    await clock.advance(0);
    expect(asked.map(([slot]) => slot)).toEqual([5n, 9n, 8n]);
    await clock.advance(10_000);
    expect(asked.slice(3)).toEqual([
      [5n, 1_000],
      [5n, 3_000],
      [5n, 7_000],
      [9n, 7_000],
      [8n, 7_000],
    ]);
    for (const slot of [5n, 8n, 9n]) times.set(slot, 1_700_000_000);
    await clock.advance(20_000);
    expect([stored.get(5n), isOver(), clock.sleepers()]).toEqual([1_700_000_000, true, 0]);
  });

  test('of deploys that no reading shows any more are looked up for the events that tell of them', async () => {
    const { clock, stored, times, isOver } = startFill([9n], [5n]);
    for (const slot of [5n, 9n]) times.set(slot, 1_700_000_000);
    await clock.advance(1_000);
    expect([stored.get(5n), isOver()]).toEqual([1_700_000_000, true]);
  });

  test('that are not there yet are asked for again after 5 s, and then ever more rarely (E39)', async () => {
    const { clock, asked, times, stored, isOver } = startFill([9n], []);
    await clock.advance(36_000);
    expect(asked.map(([, atMs]) => atMs)).toEqual([0, 5_000, 15_000, 35_000]);
    times.set(9n, 1_700_000_000);
    await clock.advance(40_000);
    expect([stored.get(9n), isOver(), clock.sleepers()]).toEqual([1_700_000_000, true, 0]);
  });

  test('that did not come for ten minutes are asked for as rarely as any other', async () => {
    const { clock, asked } = startFill([9n], [5n], START_MS - 600_000);
    await clock.advance(36_000);
    expect(asked).toHaveLength(2 * 4);
  });

  test('are looked for at most every second while the backends are away', async () => {
    const { clock, asked, fail } = startFill([9n], []);
    fail();
    await clock.advance(60_000);
    expect(asked.length).toBeLessThan(3 * 10);
  });

  test('are no longer waited for when the next reading is due', async () => {
    const { clock, asked, over, filling } = startFill([], [5n]);
    await clock.advance(500);
    over.abort();
    await filling;
    await clock.advance(60_000);
    expect([asked.length, clock.sleepers()]).toEqual([1, 0]);
  });
});
