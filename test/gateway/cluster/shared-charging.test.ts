import { describe, expect, test } from 'bun:test';
import { createLeases } from '../../../gateway/cluster/leases.ts';
import { createSharedCharging } from '../../../gateway/cluster/shared-charging.ts';
import type { Charge } from '../../../gateway/limits/charge.ts';
import type { Journal } from '../../../gateway/limits/journal.ts';
import { createLeaseSync } from '../../../gateway/cluster/lease-sync.ts';
import { createLeaseStore } from '../../fakes/lease-store.ts';
import { callerOf, planOf } from '../usage/started.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const PAID = planOf(100);
const TRIAL = planOf(5, 10, 1_000);

/** A journal whose disk may be full, or held by another process. */
function memoryJournal() {
  const spendings = new Map<number, { charged: number; refunded: number; elsewhere: number }>();
  let [full, held] = [false, false];
  const journal: Journal = {
    spendingOf: (id) => spendings.getOrInsertComputed(id, () => ({ charged: 0, refunded: 0, elsewhere: 0 })),
    spentByOthers: () => new Map(),
    append: () => (full ? Promise.reject(new Error('disk full')) : Promise.resolve()),
    isDurable: () => !full && !held,
    flush: () => undefined,
    close: () => undefined,
    retry: () => undefined,
    isFailing: () => full,
    failure: () => (full ? 'disk full' : undefined),
  };
  return {
    journal,
    setFull: (is: boolean) => void (full = is),
    setHeld: (is: boolean) => void (held = is),
  };
}

/** Processes over one store, on one virtual clock. */
function processes(count: number) {
  const { clock, advance } = createVirtualClock();
  const { store, ...authority } = createLeaseStore(clock);
  const stop = new AbortController();
  const nodes = Array.from({ length: count }, (_, i) => {
    const { journal, ...disk } = memoryJournal();
    const accounts = createLeases({ journal, revision: () => 1, share: 1 / count });
    const scans = { collect: () => [], release: () => [], hear: () => undefined };
    const parts = { accounts, scans, store, clock };
    const sync = createLeaseSync({ ...parts, node: `n${i}`, fence: 1 });
    void sync.run(stop.signal);
    const charging = createSharedCharging(accounts, sync, journal, clock);
    const charge = (plan = TRIAL, credits = 0, id = 1) =>
      charging.charge(callerOf(id), plan, { calls: 1, credits });
    const out = (credits: number, granted?: number) =>
      charging.outOfCredits(callerOf(1, granted), TRIAL, credits);
    const refund = (credits: number) => charging.refund(callerOf(1), TRIAL, { calls: 0, credits });
    const left = () => charging.creditsLeft(1, TRIAL);
    /** What comes of a price on the trial, and how long that took. */
    const settle = (credits: number, id = 1) => settled(charge(TRIAL, credits, id));
    return { charging, charge, settle, out, refund, left, sync, accounts, ...disk };
  });
  /** Lets time pass, a millisecond at a time, so that everything that waits has its turn. */
  async function pass(ms: number): Promise<void> {
    for (let i = 0; i < ms; i++) {
      advance(1);
      await new Promise(setImmediate);
    }
  }
  async function settled(charge: Charge | Promise<Charge>): Promise<{ kind: Charge['kind']; ms: number }> {
    let result: Charge | undefined;
    void Promise.resolve(charge).then((is) => (result = is));
    for (let ms = 0; ms <= 200; ms++) {
      await new Promise(setImmediate);
      if (result !== undefined) return { kind: result.kind, ms };
      await pass(1);
    }
    throw new Error('the charge did not settle');
  }
  const [first] = nodes;
  if (first === undefined) throw new Error('at least one process');
  const dispose = () => stop.abort();
  return { ...authority, first, nodes, pass, settled, clock, [Symbol.dispose]: dispose };
}

describe('a paid plan', () => {
  test('costs no more messages when more accounts call, each now and then', async () => {
    using world = processes(1);
    const messages = async (accounts: number) => {
      const before = world.counts.calls;
      for (let ms = 0; ms < 2_000; ms += 10) {
        for (let i = 0; i < accounts / 100; i++) {
          const id = 1 + ((ms / 10) % 100) * (accounts / 100) + i;
          expect((await world.settled(world.first.charge(PAID, 0, id))).kind).toBe('charged');
        }
        await world.pass(10);
      }
      return world.counts.calls - before;
    };
    expect(await messages(100)).toBeLessThanOrEqual(8);
    // More than one message carries, so a turn has two.
    expect(await messages(1_000)).toBeLessThanOrEqual(20);
  });
});

describe('a store that does not reply', () => {
  test('has at most sixteen calls under way, and no outage is assumed in a moment in which it hangs', async () => {
    using world = processes(1);
    const { sync, charge } = world.first;
    let [id, wasOut] = [0, false];
    const load = async (ms: number) => {
      for (let i = 0; i < ms; i += 5) {
        void charge(TRIAL, 1, ++id);
        await world.pass(5);
        wasOut ||= sync.isOut();
      }
    };
    await load(500);
    world.conduct('is silent');
    const before = world.counts.calls;
    while (id < 150) {
      void charge(TRIAL, 1, ++id);
      await new Promise(setImmediate);
    }
    expect(world.counts.calls - before).toBe(16);
    await load(180);
    world.conduct('answers');
    await load(200);
    expect(sync.counts().failed).toBeGreaterThanOrEqual(10);
    expect(wasOut).toBe(false);
  });

  test('for longer gets one call a second, and when it is back is found by any account within that second', async () => {
    using world = processes(1);
    const { sync, charge } = world.first;
    world.conduct('is silent');
    for (let id = 2; id < 1_000 && !sync.isOut(); id++) {
      void charge(TRIAL, 1, id);
      await world.pass(5);
    }
    const before = sync.counts().messages;
    for (let i = 0; i < 300; i++) {
      void charge(PAID);
      await world.pass(10);
    }
    expect([sync.isOut(), sync.counts().messages - before]).toEqual([true, 3]);
    world.conduct('answers');
    const backMs = world.clock.monotonic();
    for (let i = 0; i < 200 && sync.isOut(); i++) {
      void charge(PAID);
      await world.pass(10);
    }
    expect(world.clock.monotonic() - backMs).toBeLessThanOrEqual(1_050);
  });
});

describe('a trial', () => {
  test('D9 that the journal cannot write is refused and loses nothing, and is not reported', async () => {
    using world = processes(1);
    const { first } = world;
    expect((await first.settle(10)).kind).toBe('charged');
    first.setFull(true);
    expect((await first.settle(10)).kind).toBe('credits-unavailable');
    await world.pass(1_500);
    expect(world.creditsOf(1)?.nodes[0]?.charged).toBeLessThanOrEqual(10); // no more than the journal has
    let hasEnded = false;
    void first.sync.release().then(() => (hasEnded = true));
    await world.pass(200);
    expect(hasEnded).toBe(true); // a process with a full disk can end
    first.setFull(false);
    await world.pass(1_500);
    expect((await first.settle(990)).kind).toBe('charged');
    expect(first.left()).toBe(0);
  });

  test('D9 that the journal has not written yet is not reported', async () => {
    using world = processes(1);
    const { first } = world;
    await first.settle(10);
    first.setHeld(true);
    await first.settle(10);
    await world.pass(1_200);
    expect(world.creditsOf(1)?.nodes[0]?.charged).toBeLessThanOrEqual(10);
    first.setHeld(false);
    // The store is not taken for one that does not reply.
    expect((await first.settle(980)).kind).toBe('charged');
    expect(first.left()).toBe(0);
  });

  test('gives its credits back when the process ends, and at rest is forgotten', async () => {
    using world = processes(2);
    const [one, two] = world.nodes;
    for (const id of [1, 2]) await one?.settle(10, id);
    const held = (id: number) => {
      let sum = 0;
      for (const { granted, returned, charged, refunded } of world.creditsOf(id)?.nodes ?? [])
        sum += granted - returned - (charged - refunded);
      return sum;
    };
    expect(held(1)).toBeGreaterThan(0);
    const releasing = one?.sync.release();
    await world.pass(10);
    await releasing;
    expect([held(1), held(2)]).toEqual([0, 0]);
    for (let id = 1; id <= 50; id++) await two?.settle(10, id);
    expect(two?.accounts.size()).toBe(50);
    await world.pass(13_000);
    expect(two?.accounts.size()).toBe(0);
    expect((await two?.settle(980))?.kind).toBe('charged');
  });

  test('whose credits are used up is known to be so without a charge, until some are refunded or added', async () => {
    using world = processes(1);
    const { first } = world;
    expect(first.out(1)).toBeUndefined(); // nothing is known of it
    await first.settle(999);
    expect(first.out(1)).toBeUndefined();
    await first.settle(1);
    await world.pass(2_000);
    expect(first.out(1)).toMatchObject({ kind: 'out-of-credits', creditsLeft: 0 });
    expect([first.out(0), first.out(1, 1_001)]).toEqual([undefined, undefined]);
    // A call that began before is given back.
    first.refund(1);
    expect(first.out(3, 1_001)).toMatchObject({ creditsLeft: 2 });
  });
});

test('what a node ever spent, also one that is dead, is reported until the store has taken all of it', async () => {
  using world = processes(1);
  const { sync, settle } = world.first;
  await settle(100);
  const { signal } = new AbortController();
  const row = (accountId: number, node: string, charged: number) => ({
    accountId,
    node,
    charged,
    refunded: 20,
  });
  world.conduct('fails');
  const reporting = [
    sync.resync('n0', [row(1, 'n0', 100), row(9, 'n0', 70)], signal),
    sync.resync('gone', [row(9, 'gone', 30)], signal),
  ];
  await world.pass(300);
  world.conduct('answers');
  await world.pass(2_000);
  await Promise.all(reporting);
  expect(world.creditsOf(9)?.nodes.toSorted((a, b) => a.charged - b.charged)).toMatchObject([
    // Below every fence, so that only its counters are taken.
    { node: 'gone', fence: 0, charged: 30, refunded: 20 },
    { node: 'n0', fence: 1, charged: 70, refunded: 20 },
  ]);
});
