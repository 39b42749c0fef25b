import { describe, expect, test } from 'bun:test';
import { createLeases, createSharedCharging } from '../../../gateway/limits/leases.ts';
import type { Charge } from '../../../gateway/limits/charge.ts';
import type { Journal, Spending } from '../../../gateway/limits/journal.ts';
import { createLeaseSync } from '../../../gateway/limits/lease-sync.ts';
import { createScanPermits } from '../../../gateway/limits/scans.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { createLeaseStore } from '../../fakes/lease-store.ts';
import { callerOf } from '../usage/started.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const PAID: Plan = { rps: 100, burst: 100, credits: undefined, batchMax: 100, scans: 1, inFlight: 16 };
const TRIAL: Plan = { ...PAID, rps: 5, burst: 10, credits: 1_000 };

const caller = (accountId = 1) => callerOf(accountId);
const price = (calls: number, credits = 0) => ({ calls, credits });

/** A journal whose disk may be full, or held by another process. */
function memoryJournal() {
  const spendings = new Map<number, Spending>();
  let full = false;
  let held: PromiseWithResolvers<void> | undefined;
  const journal: Journal = {
    spendingOf(accountId) {
      const spending = spendings.get(accountId) ?? { charged: 0, refunded: 0 };
      spendings.set(accountId, spending);
      return spending;
    },
    spentByOthers: () => new Map(),
    append: () => (full ? Promise.reject(new Error('disk full')) : (held?.promise ?? Promise.resolve())),
    isDurable: () => !full && held === undefined,
    flush: () => undefined,
    close: () => undefined,
    retry: () => undefined,
    isFailing: () => full,
    failure: () => (full ? 'disk full' : undefined),
  };
  return {
    journal,
    setFull: (is: boolean) => void (full = is),
    hold: () => void (held = Promise.withResolvers()),
    free() {
      held?.resolve();
      held = undefined;
    },
    spent: (id = 1) => spendings.get(id),
  };
}

/** Processes over one store, on one virtual clock. */
function processes(count: number) {
  const time = createVirtualClock();
  const store = createLeaseStore(time.clock);
  const stop = new AbortController();
  const nodes = Array.from({ length: count }, (_, i) => {
    const { journal, ...disk } = memoryJournal();
    const accounts = createLeases({ ...journal, revision: () => 1, share: 1 / count });
    const parts = { accounts, scans: createScanPermits(), store: store.store, journal, clock: time.clock };
    const sync = createLeaseSync({ ...parts, node: `n${i}`, fence: 1 });
    void sync.run(stop.signal);
    return { ...createSharedCharging(accounts, sync, journal, time.clock), sync, accounts, ...disk };
  });
  /** Lets time pass, a millisecond at a time, so that everything that waits has its turn. */
  async function pass(ms: number): Promise<void> {
    for (let i = 0; i < ms; i++) {
      time.advance(1);
      await new Promise(setImmediate);
    }
  }
  async function settled(charge: Charge | Promise<Charge>): Promise<{ charge: Charge; ms: number }> {
    let result: Charge | undefined;
    void Promise.resolve(charge).then((is) => (result = is));
    for (let ms = 0; ms <= 200; ms++) {
      await new Promise(setImmediate);
      if (result !== undefined) return { charge: result, ms };
      await pass(1);
    }
    throw new Error('the charge did not settle');
  }
  const [first] = nodes;
  if (first === undefined) throw new Error('at least one process');
  return { first, nodes, store, pass, settled, clock: time.clock, [Symbol.dispose]: () => stop.abort() };
}

describe('a paid plan', () => {
  test('is answered at once: from its debt when cold, from its lease when warm', async () => {
    using world = processes(2);
    expect(world.first.charge(caller(), PAID, price(1))).toMatchObject({ kind: 'charged' });
    expect(world.first.creditsLeft(1, PAID)).toBeUndefined();
    await world.pass(30);
    for (let i = 0; i < 50; i++) {
      await world.pass(10);
      expect((await world.settled(world.first.charge(caller(), PAID, price(1)))).charge.kind).toBe('charged');
    }
    expect(world.first.charge(caller(), PAID, price(1))).not.toBeInstanceOf(Promise);
  });

  test('costs no more messages when more accounts call, each now and then', async () => {
    using world = processes(1);
    const messages = async (accounts: number) => {
      const before = world.store.counts.calls;
      for (let ms = 0; ms < 2_000; ms += 10) {
        for (let i = 0; i < accounts / 100; i++) {
          const accountId = 1 + ((ms / 10) % 100) * (accounts / 100) + i;
          const charge = world.first.charge({ ...caller(), accountId }, PAID, price(1));
          expect((await world.settled(charge)).charge.kind).toBe('charged');
        }
        await world.pass(10);
      }
      return world.store.counts.calls - before;
    };
    expect(await messages(100)).toBeLessThanOrEqual(8);
    // More than one message carries, so a turn has two.
    expect(await messages(1_000)).toBeLessThanOrEqual(20);
  });

  test('goes on at its share while the store is silent, without waiting once that is known', async () => {
    using world = processes(2);
    world.store.conduct('is silent');
    const kinds: string[] = [];
    for (let i = 0; i < 300; i++) {
      const { charge, ms } = await world.settled(world.first.charge(caller(), PAID, price(1)));
      kinds.push(charge.kind);
      if (i > 30) expect(ms).toBe(0);
      await world.pass(10);
    }
    const admitted = kinds.slice(100).filter((kind) => kind === 'charged').length;
    expect(admitted).toBeGreaterThanOrEqual(90);
    expect(admitted).toBeLessThanOrEqual(105);
    expect(new Set(kinds)).toEqual(new Set(['charged', 'over-rate']));
  });
});

test('a store that is back is found within its trial by accounts whose messages may wait', async () => {
  using world = processes(1);
  const { first, store } = world;
  const call = async () => {
    await world.settled(first.charge(caller(), PAID, price(1)));
    await world.pass(10);
  };
  store.conduct('is silent');
  for (let i = 0; i < 1_000 && !first.sync.isOut(); i++) {
    void first.charge(caller(2), TRIAL, price(1, 1));
    await call();
  }
  expect(first.sync.isOut()).toBe(true);
  store.conduct('answers');
  const backMs = world.clock.monotonic();
  for (let i = 0; i < 200 && first.sync.isOut(); i++) await call();
  expect(first.sync.isOut()).toBe(false);
  expect(world.clock.monotonic() - backMs).toBeLessThanOrEqual(1_000 + 50);
});

test('a store that hangs for a moment under load is no outage, and one that is out gets a call a second', async () => {
  using world = processes(1);
  const { first, store } = world;
  let [id, wasOut] = [0, false];
  const load = async (ms: number) => {
    for (let i = 0; i < ms; i += 5) {
      void first.charge(caller(++id), TRIAL, price(1, 1));
      await world.pass(5);
      wasOut ||= first.sync.isOut();
    }
  };
  await load(500);
  store.conduct('is silent');
  await load(180);
  store.conduct('answers');
  await load(200);
  expect(first.sync.counts().failed).toBeGreaterThanOrEqual(10);
  expect(wasOut).toBe(false);
  store.conduct('is silent');
  await load(1_000);
  expect(first.sync.isOut()).toBe(true);
  const before = first.sync.counts().messages;
  await load(3_000);
  expect(first.sync.counts().messages - before).toBe(3);
});

test('a store that is silent has no more than sixteen calls under way', async () => {
  using world = processes(1);
  world.store.conduct('is silent');
  for (let id = 1; id <= 50; id++) {
    void world.first.charge(caller(id), TRIAL, price(1, 1));
    await new Promise(setImmediate);
  }
  expect(world.store.counts.calls).toBe(16);
});

describe('a trial', () => {
  test('D9 is charged when its credits are durable, over all processes to the last one', async () => {
    using world = processes(2);
    const kinds: string[] = [];
    for (let i = 0; i < 12; i++) {
      for (const node of world.nodes)
        kinds.push((await world.settled(node.charge(caller(), TRIAL, price(1, 50)))).charge.kind);
      await world.pass(1_100);
    }
    expect(kinds.filter((kind) => kind === 'charged').length).toBe(20);
    expect(kinds.slice(-2)).toEqual(['out-of-credits', 'out-of-credits']);
    const spent = world.nodes.map((node) => node.spent()?.charged ?? 0);
    expect(spent.reduce((sum, charged) => sum + charged, 0)).toBe(1_000);
  });

  test('that the journal cannot write is refused, and loses nothing', async () => {
    using world = processes(1);
    expect((await world.settled(world.first.charge(caller(), TRIAL, price(1, 10)))).charge.kind).toBe(
      'charged',
    );
    world.first.setFull(true);
    expect((await world.settled(world.first.charge(caller(), TRIAL, price(1, 10)))).charge.kind).toBe(
      'credits-unavailable',
    );
    await world.pass(1_500);
    expect(world.store.creditsOf(1)?.nodes[0]?.charged).toBeLessThanOrEqual(10); // no more than the journal has
    let hasEnded = false;
    void world.first.sync.release().then(() => (hasEnded = true));
    await world.pass(200);
    expect(hasEnded).toBe(true); // a process with a full disk can end
    world.first.setFull(false);
    await world.pass(1_500);
    expect(await world.settled(world.first.charge(caller(), TRIAL, price(1, 990)))).toMatchObject({
      charge: { kind: 'charged' },
    });
    expect(world.first.creditsLeft(1, TRIAL)).toBe(0);
  });

  test('that the journal writes later is charged then, and what is reported waits for it', async () => {
    using world = processes(1);
    const { first } = world;
    await world.settled(first.charge(caller(), TRIAL, price(1, 10)));
    first.hold();
    const charge = Promise.resolve(first.charge(caller(), TRIAL, price(1, 10)));
    await world.pass(1_200);
    expect(world.store.creditsOf(1)?.nodes[0]?.charged).toBeLessThanOrEqual(10); // no more than the journal has
    first.free();
    expect((await world.settled(charge)).charge.kind).toBe('charged');
    // The store is not taken for one that does not answer.
    expect((await world.settled(first.charge(caller(), TRIAL, price(1, 980)))).charge).toMatchObject({
      kind: 'charged',
    });
    expect(first.creditsLeft(1, TRIAL)).toBe(0);
  });

  test('is counted in usage at the moment in which the counters of its journal change', async () => {
    using world = processes(1);
    const { first } = world;
    const seen: unknown[] = [];
    const note = (name: string) => () => void seen.push([name, { ...first.spent() }]);
    const usageHook = { take: note('take'), giveBack: note('giveBack') };
    const charge = () => world.settled(first.charge(caller(), TRIAL, { ...price(1, 3), usageHook }));
    expect((await charge()).charge.kind).toBe('charged');
    first.setFull(true);
    expect((await charge()).charge.kind).toBe('credits-unavailable');
    expect(seen).toEqual([
      ['take', { charged: 3, refunded: 0 }],
      ['take', { charged: 6, refunded: 0 }],
      ['giveBack', { charged: 6, refunded: 3 }],
    ]);
  });

  test('whose credits cannot be known is 503 within its wait, then at once, and passes again when they can', async () => {
    using world = processes(1);
    world.store.conduct('is silent');
    const first = await world.settled(world.first.charge(caller(), TRIAL, price(1, 10)));
    expect(first.charge.kind).toBe('credits-unavailable');
    expect(first.ms).toBeLessThanOrEqual(101);
    await world.pass(10);
    expect(await world.settled(world.first.charge(caller(), TRIAL, price(1, 10)))).toMatchObject({
      charge: { kind: 'credits-unavailable' },
      ms: 0,
    });
    world.store.conduct('answers');
    await world.pass(2_000);
    expect((await world.settled(world.first.charge(caller(), TRIAL, price(1, 10)))).charge.kind).toBe(
      'charged',
    );
  });

  test('gives its credits back when it is quiet, and when the process ends', async () => {
    using world = processes(2);
    await world.settled(world.first.charge(caller(), TRIAL, price(1, 10)));
    await world.settled(world.first.charge(caller(2), TRIAL, price(1, 10)));
    const held = (id: number) => {
      let sum = 0;
      for (const { granted, returned, charged, refunded } of world.store.creditsOf(id)?.nodes ?? [])
        sum += granted - returned - (charged - refunded);
      return sum;
    };
    expect(held(1)).toBeGreaterThan(0);
    const releasing = world.first.sync.release();
    await world.pass(10);
    await releasing;
    expect([held(1), held(2)]).toEqual([0, 0]);
  });

  test('is forgotten at rest', async () => {
    using world = processes(1);
    for (let id = 1; id <= 50; id++) await world.settled(world.first.charge(caller(id), TRIAL, price(1, 10)));
    expect(world.first.accounts.size()).toBe(50);
    await world.pass(13_000);
    expect(world.first.accounts.size()).toBe(0);
    expect((await world.settled(world.first.charge(caller(1), TRIAL, price(1, 990)))).charge.kind).toBe(
      'charged',
    );
  });

  test('whose credits are used up is known to be so without a charge, and only then', async () => {
    using world = processes(1);
    const { first } = world;
    const out = () => first.outOfCredits(caller(), TRIAL, 1);
    expect(out()).toBeUndefined(); // nothing is known of it
    await world.settled(first.charge(caller(), TRIAL, price(1, 999)));
    expect(out()).toBeUndefined();
    await world.settled(first.charge(caller(), TRIAL, price(1, 1)));
    expect(out()).toMatchObject({ kind: 'out-of-credits', creditsLeft: 0 });
    await world.pass(2_000);
    expect(out()).toMatchObject({ kind: 'out-of-credits', creditsLeft: 0 });
    expect(first.outOfCredits(caller(), TRIAL, 0)).toBeUndefined();
    first.refund(caller(), TRIAL, price(0, 1));
    expect(out()).toBeUndefined();
  });

  test('whose credits are used up has those that are added at once, also when no call is let in', async () => {
    using world = processes(1);
    const { first } = world;
    await world.settled(first.charge(caller(), TRIAL, price(1, 1_000)));
    const out = (creditsGranted: number) => first.outOfCredits({ ...caller(), creditsGranted }, TRIAL, 1);
    expect(out(1_000)).toMatchObject({ kind: 'out-of-credits', creditsLeft: 0 });
    expect(out(1_001)).toBeUndefined();
    // A call that began before is given back.
    first.refund(caller(), TRIAL, price(1, 1));
    expect(first.outOfCredits({ ...caller(), creditsGranted: 1_001 }, TRIAL, 3)).toMatchObject({
      creditsLeft: 2,
    });
  });

  test('that was refunded can spend it again', async () => {
    using world = processes(1);
    await world.settled(world.first.charge(caller(), TRIAL, price(1, 1_000)));
    world.first.refund(caller(), TRIAL, price(0, 400));
    expect(await world.settled(world.first.charge(caller(), TRIAL, price(1, 400)))).toMatchObject({
      charge: { kind: 'charged' },
    });
    expect(world.first.creditsLeft(1, TRIAL)).toBe(0);
    expect(world.first.spent()).toEqual({ charged: 1_400, refunded: 400 });
  });
});

test('what a node ever spent is reported again to a store that lost it, in memory or not', async () => {
  using world = processes(1);
  await world.settled(world.first.charge(caller(1), TRIAL, price(1, 100)));
  const rows = [
    { accountId: 1, node: 'n0', charged: 100, refunded: 0 },
    { accountId: 9, node: 'n0', charged: 70, refunded: 20 },
  ];
  world.store.conduct('fails');
  const telling = world.first.sync.resync('n0', rows, new AbortController().signal);
  await world.pass(300);
  world.store.conduct('answers');
  await world.pass(2_000);
  await telling;
  expect(world.store.creditsOf(9)?.nodes).toMatchObject([{ charged: 70, refunded: 20 }]);
});
