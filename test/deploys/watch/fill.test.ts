import { describe, expect, test } from 'bun:test';
import { createBlockTimes, createFill } from '../../../deploys/watch/block-time.ts';
import type { CallOutcome, RpcBackend } from '../../../deploys/watch/rpc.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';

const NONE: CallOutcome = { kind: 'error', code: -32007 };

/** A fill over a backend that knows `times`, and events that wait for `awaited`. */
function start(shown: bigint[], awaited: bigint[], sinceMs = START_MS) {
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
    const { clock, asked, times, stored, isOver } = start([9n, 8n, 5n], [5n]);
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
    const { clock, stored, times, isOver } = start([9n], [5n]);
    for (const slot of [5n, 9n]) times.set(slot, 1_700_000_000);
    await clock.advance(1_000);
    expect([stored.get(5n), isOver()]).toEqual([1_700_000_000, true]);
  });

  test('that are not there yet are asked for again after 5 s, and then ever more rarely (E39)', async () => {
    const { clock, asked, times, stored, isOver } = start([9n], []);
    await clock.advance(36_000);
    expect(asked.map(([, atMs]) => atMs)).toEqual([0, 5_000, 15_000, 35_000]);
    times.set(9n, 1_700_000_000);
    await clock.advance(40_000);
    expect([stored.get(9n), isOver(), clock.sleepers()]).toEqual([1_700_000_000, true, 0]);
  });

  test('that did not come for ten minutes are asked for as rarely as any other', async () => {
    const { clock, asked } = start([9n], [5n], START_MS - 600_000);
    await clock.advance(36_000);
    expect(asked).toHaveLength(2 * 4);
  });

  test('are looked for at most every second while the backends are away', async () => {
    const { clock, asked, fail } = start([9n], []);
    fail();
    await clock.advance(60_000);
    expect(asked.length).toBeLessThan(3 * 10);
  });

  test('are no longer waited for when the next reading is due', async () => {
    const { clock, asked, over, filling } = start([], [5n]);
    await clock.advance(500);
    over.abort();
    await filling;
    await clock.advance(60_000);
    expect([asked.length, clock.sleepers()]).toEqual([1, 0]);
  });
});
