import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type Charge, createCharging } from '../../../gateway/limits/charge.ts';
import { createJournal } from '../../../gateway/limits/journal.ts';
import { LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { spentOf } from '../../../shared/ledger/schema.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { callerOf } from '../usage/started.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const PAID: Plan = { rps: 5, burst: 10, credits: undefined, batchMax: 100, scans: 1, inFlight: 16 };
const TRIAL: Plan = { ...PAID, credits: 250_000 };
const WIDE: Plan = { ...TRIAL, rps: 1_000_000, burst: 1_000_000 };

const caller = (accountId = 1, creditsGranted = 100) => ({ ...callerOf(accountId), creditsGranted });
const price = (credits: number, calls = 1) => ({ calls, credits });

/** Charging over a real ledger and a clock that stands still; `again` is the process started anew after its machine was. */
function started() {
  const folder = temporaryFolder();
  const path = join(folder.path, 'ledger.db');
  const store = opened(path, LEDGER_MIGRATIONS);
  const { clock, advance } = createVirtualClock();
  const start = (bootMs: number) => {
    const journal = createJournal(store, 'gateway', setImmediate);
    const ownClock = { ...clock, monotonic: () => clock.monotonic() - bootMs };
    return { ...createCharging(journal, store, 'gateway', ownClock), journal };
  };
  return {
    ...start(0),
    again: () => start(clock.monotonic() - 5),
    advance,
    path,
    store,
    spent: (account = 1) => spentOf(store, account),
    rows: () => store.query('SELECT count(*) FROM buckets').values()[0]?.[0],
    [Symbol.dispose]() {
      store.close();
      folder[Symbol.dispose]();
    },
  };
}

const kindsOf = (charges: readonly Charge[]) => {
  const counts: Partial<Record<Charge['kind'], number>> = {};
  for (const { kind } of charges) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
};

describe('a plan without credits', () => {
  test('is answered without a turn of the event loop and without the journal: to charge, to refuse, to refund', () => {
    using limits = started();
    limits.store.run('ALTER TABLE spent RENAME TO away');
    const charge = (credits: number) => limits.charge(caller(), PAID, price(credits));
    expect(charge(1_000_000)).toMatchObject({ kind: 'charged' });
    expect(limits.creditsLeft(1, PAID)).toBeUndefined();
    for (let i = 0; i < 9; i++) charge(1);
    expect(charge(1)).toMatchObject({ kind: 'over-rate', waitMs: 200 });
    limits.refund(caller(), PAID, { calls: 0, credits: 1_000_000 });
  });
});

describe('the rate', () => {
  test("is an account's own: one at its end does not slow another", async () => {
    using limits = started();
    for (let i = 0; i < 10; i++) await limits.charge(caller(1), PAID, price(1));
    expect((await limits.charge(caller(1), PAID, price(1))).kind).toBe('over-rate');
    expect((await limits.charge(caller(2), PAID, price(1))).kind).toBe('charged');
  });

  test('outlives a sweep while it is used up, and an account at rest is let go', async () => {
    using limits = started();
    await limits.charge(caller(), PAID, price(0, 10));
    limits.advance(1_999);
    limits.sweep(10);
    expect((await limits.charge(caller(), PAID, price(0, 10))).kind).toBe('over-rate');
    limits.advance(1);
    limits.sweep(10);
    expect(await limits.charge(caller(), PAID, price(0, 10))).toMatchObject({
      kind: 'charged',
      rate: { tokens: 0 },
    });
  });
});

describe('credits', () => {
  test('come with every charge, and are in the ledger when it resolves', async () => {
    using limits = started();
    expect(await limits.charge(caller(), TRIAL, price(30))).toMatchObject({
      kind: 'charged',
    });
    expect(limits.creditsLeft(1, TRIAL)).toBe(70);
    expect(limits.spent()).toBe(30);
    expect(await limits.charge(caller(), TRIAL, price(70))).toMatchObject({
      kind: 'charged',
    });
    expect(limits.creditsLeft(1, TRIAL)).toBe(0);
    expect(limits.spent()).toBe(100);
    expect((await limits.charge(caller(), TRIAL, price(1))).kind).toBe('out-of-credits');
  });

  test.each([[1], [7], [50]])(
    'of calls at once at %p credits each exactly as many pass as there are credits',
    async (each) => {
      using limits = started();
      const granted = 1_003;
      const charges = await Promise.all(
        Array.from({ length: 1_200 }, () => limits.charge(caller(1, granted), WIDE, price(each))),
      );
      const passed = Math.floor(granted / each);
      expect(kindsOf(charges)).toEqual({ charged: passed, 'out-of-credits': 1_200 - passed });
      expect(limits.spent()).toBe(passed * each);
    },
  );

  test('that are short for the whole request are not taken in part, and what is cheaper still passes', async () => {
    using limits = started();
    expect((await limits.charge(caller(), TRIAL, price(101))).kind).toBe('out-of-credits');
    expect(limits.spent()).toBe(0);
    expect(await limits.charge(caller(), TRIAL, price(100))).toMatchObject({
      kind: 'charged',
    });
    expect(limits.creditsLeft(1, TRIAL)).toBe(0);
  });

  test('a free call passes with none left and writes nothing', async () => {
    using limits = started();
    expect(await limits.charge(caller(1, 0), TRIAL, price(0))).toMatchObject({
      kind: 'charged',
    });
    expect(limits.creditsLeft(1, TRIAL)).toBe(0);
    expect(limits.store.query('SELECT count(*) FROM spent').values()).toEqual([[0]]);
  });

  test('lowered below what is spent are none left, not fewer: a free call still passes', async () => {
    using limits = started();
    await limits.charge(caller(1, 100), TRIAL, price(60));
    expect((await limits.charge(caller(1, 50), TRIAL, price(1))).kind).toBe('out-of-credits');
    expect(await limits.charge(caller(1, 50), TRIAL, price(0))).toMatchObject({
      kind: 'charged',
    });
    expect(limits.creditsLeft(1, TRIAL)).toBe(0);
  });

  test('granted later count at once', async () => {
    using limits = started();
    await limits.charge(caller(1, 100), TRIAL, price(100));
    expect(await limits.charge(caller(1, 150), TRIAL, price(20))).toMatchObject({
      kind: 'charged',
    });
    expect(limits.creditsLeft(1, TRIAL)).toBe(30);
  });

  test('spent before a restart are spent after it', async () => {
    using limits = started();
    await limits.charge(caller(), TRIAL, price(95));
    const again = limits.again();
    expect((await again.charge(caller(), TRIAL, price(6))).kind).toBe('out-of-credits');
    expect((await again.charge(caller(), TRIAL, price(5))).kind).toBe('charged');
  });
});

describe('C3 L16 rate and credits are taken together or not at all', () => {
  test('a refusal by credits takes no tokens', async () => {
    using limits = started();
    for (let i = 0; i < 20; i++) {
      expect(await limits.charge(caller(), TRIAL, price(101))).toMatchObject({
        kind: 'out-of-credits',
        rate: { tokens: 10 },
      });
    }
    expect(await limits.charge(caller(), TRIAL, price(1, 10))).toMatchObject({
      kind: 'charged',
      rate: { tokens: 0 },
    });
  });

  test('a refusal by rate takes no credits', async () => {
    using limits = started();
    await limits.charge(caller(), TRIAL, price(10, 10));
    for (let i = 0; i < 20; i++)
      expect((await limits.charge(caller(), TRIAL, price(1))).kind).toBe('over-rate');
    expect(limits.spent()).toBe(10);
    limits.advance(200);
    expect(await limits.charge(caller(), TRIAL, price(1))).toMatchObject({
      kind: 'charged',
    });
    expect(limits.creditsLeft(1, TRIAL)).toBe(89);
  });

  test('L21 an account above its rate and out of credits is refused by credits, which do not come back by waiting', async () => {
    using limits = started();
    await limits.charge(caller(), TRIAL, price(100, 10));
    expect(await limits.charge(caller(), TRIAL, price(1))).toMatchObject({
      kind: 'out-of-credits',
      creditsLeft: 0,
    });
    expect((await limits.charge(caller(), TRIAL, price(0))).kind).toBe('over-rate');
    expect((await limits.charge(caller(1, 101), TRIAL, price(1))).kind).toBe('over-rate');
  });
});

describe('a refund', () => {
  test('gives the credits back, durably, and the next call can spend them', async () => {
    using limits = started();
    await limits.charge(caller(), TRIAL, price(100));
    limits.refund(caller(), TRIAL, { calls: 0, credits: 40 });
    expect(await limits.charge(caller(), TRIAL, price(40))).toMatchObject({
      kind: 'charged',
    });
    expect(limits.creditsLeft(1, TRIAL)).toBe(0);
    expect(limits.spent()).toBe(100);
    limits.refund(caller(), TRIAL, { calls: 0, credits: 25 });
    limits.journal.flush();
    expect(limits.spent()).toBe(75);
  });

  test('of nothing writes nothing', () => {
    using limits = started();
    limits.refund(caller(), TRIAL, { calls: 0, credits: 0 });
    limits.journal.flush();
    expect(limits.store.query('SELECT * FROM spent').values()).toEqual([]);
  });
});

describe('a journal that fails', () => {
  const broken = (limits: ReturnType<typeof started>) => {
    limits.store.run(
      "CREATE TRIGGER broken BEFORE INSERT ON spent BEGIN SELECT RAISE(FAIL, 'disk full'); END",
    );
    return () => void limits.store.run('DROP TRIGGER broken');
  };

  test('refuses the call as a check that cannot be done, and loses neither credits nor rate', async () => {
    using limits = started();
    const mend = broken(limits);
    const charges = await Promise.all(
      Array.from({ length: 10 }, () => limits.charge(caller(), TRIAL, price(10))),
    );
    expect(kindsOf(charges)).toEqual({ 'credits-unavailable': 10 });
    mend();
    expect(await limits.charge(caller(), TRIAL, price(100, 10))).toMatchObject({
      kind: 'charged',
      rate: { tokens: 0 },
    });
    expect(limits.creditsLeft(1, TRIAL)).toBe(0);
    expect(limits.spent()).toBe(100);
  });

  test('gives no rate away: what comes back is what was taken', async () => {
    using limits = started();
    await limits.charge(caller(), TRIAL, price(1, 6));
    const mend = broken(limits);
    expect((await limits.charge(caller(), TRIAL, price(1, 3))).kind).toBe('credits-unavailable');
    mend();
    expect((await limits.charge(caller(), TRIAL, price(1, 5))).kind).toBe('over-rate');
    expect(await limits.charge(caller(), TRIAL, price(1, 4))).toMatchObject({
      kind: 'charged',
      rate: { tokens: 0 },
    });
  });

  test('that cannot be read refuses without a rejection, and without taking anything', async () => {
    using limits = started();
    limits.store.run('ALTER TABLE spent RENAME TO away');
    expect((await limits.charge(caller(), TRIAL, price(1, 10))).kind).toBe('credits-unavailable');
    limits.store.run('ALTER TABLE away RENAME TO spent');
    const charge = await limits.charge(caller(), TRIAL, price(1, 10));
    expect(charge.kind).toBe('charged');
    expect(limits.creditsLeft(1, TRIAL)).toBe(99);
  });

  test('keeps a refund that it could not write until it can', async () => {
    using limits = started();
    await limits.charge(caller(), TRIAL, price(100));
    const mend = broken(limits);
    limits.refund(caller(), TRIAL, { calls: 0, credits: 30 });
    await new Promise(setImmediate);
    expect(limits.spent()).toBe(100);
    mend();
    limits.journal.flush();
    expect(limits.spent()).toBe(70);
  });
});

describe('a restart', () => {
  const calls = (count: number) => price(0, count);

  test('refills what the time that went by refills, and no more', async () => {
    using limits = started();
    await limits.charge(caller(), PAID, calls(10));
    limits.advance(400);
    limits.save(100);
    expect(await limits.again().charge(caller(), PAID, calls(3))).toMatchObject({ kind: 'over-rate' });
    limits.advance(600);
    const after = limits.again();
    expect((await after.charge(caller(), PAID, calls(6))).kind).toBe('over-rate');
    expect((await after.charge(caller(), PAID, calls(5))).kind).toBe('charged');
  });

  test('keeps what a batch above the burst owes', async () => {
    using limits = started();
    await limits.charge(caller(), PAID, calls(60));
    limits.save(100);
    expect(await limits.again().charge(caller(), PAID, calls(1))).toMatchObject({ waitMs: 10_200 });
  });

  test('with the wall clock set back refills nothing', async () => {
    using limits = started();
    await limits.charge(caller(), PAID, calls(10));
    limits.save(100);
    limits.advance(-86_400_000);
    expect(await limits.again().charge(caller(), PAID, calls(1))).toMatchObject({ waitMs: 200 });
  });

  test('with the wall clock set back keeps no debt, for it may have been paid off since', async () => {
    using limits = started();
    await limits.charge(caller(), PAID, calls(60));
    limits.save(100);
    limits.advance(60_000);
    limits.sweep(10);
    limits.advance(-86_400_000);
    expect(await limits.again().charge(caller(), PAID, calls(1))).toMatchObject({ waitMs: 200 });
  });

  test('keeps nothing of buckets that have filled up, also of those that were forgotten before', async () => {
    using limits = started();
    for (let id = 1; id <= 5; id++) await limits.charge(caller(id), PAID, calls(2 * id));
    expect([limits.save(3), limits.save(3), limits.rows()]).toEqual([2, 0, 5]);
    limits.advance(1_000);
    limits.sweep(10);
    await limits.charge(caller(1), PAID, calls(10));
    limits.save(10);
    const after = limits.again();
    expect(limits.rows()).toBe(4);
    const tokens = await Promise.all([1, 2, 5].map((id) => after.charge(caller(id), PAID, calls(0))));
    expect(tokens).toMatchObject([0, 10, 5].map((left) => ({ rate: { tokens: left } })));
  });

  test('with a ledger that is held or takes no writes begins with whole bursts, and writes later', async () => {
    using limits = started();
    await limits.charge(caller(), PAID, calls(10));
    limits.store.run(
      "CREATE TRIGGER full BEFORE INSERT ON buckets BEGIN SELECT RAISE(FAIL, 'disk full'); END",
    );
    expect(limits.save(100)).toBe(1);
    limits.store.run('DROP TRIGGER full');
    expect([limits.save(100), limits.rows()]).toEqual([0, 1]);
    using other = opened(limits.path, LEDGER_MIGRATIONS);
    other.run('BEGIN IMMEDIATE');
    expect((await limits.again().charge(caller(), PAID, calls(10))).kind).toBe('charged');
    other.run('ROLLBACK');
    expect((await limits.again().charge(caller(), PAID, calls(1))).kind).toBe('over-rate');
  });
});
