import { describe, expect, test } from 'bun:test';
import { createCharging, StatedCredits } from '../../../gateway/limits/charge.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { callerOf, openLedger, planOf, startUsage } from '../usage/started.ts';

const PAID = planOf(5, 10);
const TRIAL = planOf(5, 10, 250_000);

const caller = (accountId = 1, creditsGranted = 100) => callerOf(accountId, creditsGranted);
const price = (credits: number, calls = 1) => ({ calls, credits });

const started = () => startUsage({ soon: setImmediate });
type Started = ReturnType<typeof started>;
const kindOf = async ({ charging }: Started, plan: Plan, credits: number, calls = 1, granted = 100) =>
  (await charging.charge(caller(1, granted), plan, price(credits, calls))).kind;
const left = ({ charging }: Started) => charging.creditsLeft(1, TRIAL);
const bucketsIn = ({ ledger }: Started) => ledger.query('SELECT count(*) FROM buckets').values()[0]?.[0];

test('a plan without credits is answered without a turn of the event loop and without the journal: to charge, to refuse, to refund', () => {
  using limits = started();
  limits.ledger.run('ALTER TABLE spent RENAME TO away');
  const charge = (credits: number) => limits.charging.charge(caller(), PAID, price(credits));
  expect(charge(1_000_000)).toMatchObject({ kind: 'charged' });
  expect(limits.charging.creditsLeft(1, PAID)).toBeUndefined();
  for (let i = 0; i < 9; i++) charge(1);
  expect(charge(1)).toMatchObject({ kind: 'over-rate', waitMs: 200 });
  expect(limits.charging.charge(caller(2), PAID, price(1))).toMatchObject({ kind: 'charged' });
  limits.charging.refund(caller(), PAID, price(1_000_000, 0));
});

test('the rate outlives a sweep while it is used up, and an account at rest is forgotten', async () => {
  using limits = started();
  await kindOf(limits, PAID, 0, 10);
  limits.advance(1_999);
  limits.charging.sweep(10);
  expect(await kindOf(limits, PAID, 0, 10)).toBe('over-rate');
  limits.advance(1);
  limits.charging.sweep(10);
  expect(await kindOf(limits, PAID, 0, 10)).toBe('charged');
});

describe('credits', () => {
  test('are in the ledger when the charge resolves, are refused above what is left, and free calls still pass', async () => {
    using limits = started();
    expect(await kindOf(limits, TRIAL, 101)).toBe('out-of-credits');
    expect(await kindOf(limits, TRIAL, 30)).toBe('charged');
    expect([left(limits), limits.spent()]).toEqual([70, 30]);
    expect(await kindOf(limits, TRIAL, 70)).toBe('charged');
    expect([left(limits), limits.spent()]).toEqual([0, 100]);
    expect([await kindOf(limits, TRIAL, 1), await kindOf(limits, TRIAL, 0)]).toEqual([
      'out-of-credits',
      'charged',
    ]);
  });

  test('that are granted or lowered later count at once, and lowered below what is spent they are none', async () => {
    using limits = started();
    await kindOf(limits, TRIAL, 60);
    expect([await kindOf(limits, TRIAL, 1, 1, 50), await kindOf(limits, TRIAL, 0, 1, 50)]).toEqual([
      'out-of-credits',
      'charged',
    ]);
    expect(left(limits)).toBe(0);
    expect(await kindOf(limits, TRIAL, 60, 1, 150)).toBe('charged');
    expect(left(limits)).toBe(30);
  });

  test('spent before a restart, also by another node of the host, are spent after it', async () => {
    using limits = started();
    await kindOf(limits, TRIAL, 65);
    limits.ledger.run("INSERT INTO spent VALUES (1, 'gone', 40, 10)");
    const again = limits.again();
    expect([await kindOf(again, TRIAL, 6), await kindOf(again, TRIAL, 5)]).toEqual([
      'out-of-credits',
      'charged',
    ]);
    expect(left(again)).toBe(0);
  });

  test('that are stated are remembered for the accounts charged last, fifty thousand at most', () => {
    const stated = new StatedCredits();
    for (let id = 0; id <= 50_000; id++) {
      stated.setTotal(id, 10);
      stated.setTotal(0, 10);
    }
    expect([0, 1, 49_999].map((id) => stated.left(id, 4, 0))).toEqual([6, undefined, 6]);
  });
});

describe('C3 L16 rate and credits are taken together or not at all', () => {
  test('a refusal by credits takes no tokens, one by rate no credits', async () => {
    using limits = started();
    for (let i = 0; i < 20; i++) expect(await kindOf(limits, TRIAL, 101)).toBe('out-of-credits');
    expect(await kindOf(limits, TRIAL, 10, 10)).toBe('charged');
    for (let i = 0; i < 20; i++) expect(await kindOf(limits, TRIAL, 1)).toBe('over-rate');
    limits.advance(200);
    expect(await kindOf(limits, TRIAL, 1)).toBe('charged');
    expect([limits.spent(), left(limits)]).toEqual([11, 89]);
  });

  test('L21 an account above its rate and out of credits is refused by credits, which do not come back by waiting', async () => {
    using limits = started();
    await kindOf(limits, TRIAL, 100, 10);
    const kinds = [
      await kindOf(limits, TRIAL, 1),
      await kindOf(limits, TRIAL, 0),
      await kindOf(limits, TRIAL, 1, 1, 101),
    ];
    expect(kinds).toEqual(['out-of-credits', 'over-rate', 'over-rate']);
  });
});

test('a refund is durable and can be spent; one of nothing writes nothing', async () => {
  using limits = started();
  limits.charging.refund(caller(), TRIAL, price(0, 0));
  limits.journal.flush();
  expect(limits.ledger.query('SELECT * FROM spent').values()).toEqual([]);
  await kindOf(limits, TRIAL, 100);
  limits.charging.refund(caller(), TRIAL, price(40, 0));
  expect(await kindOf(limits, TRIAL, 40)).toBe('charged');
  limits.charging.refund(caller(), TRIAL, price(25, 0));
  const mend = limits.break('spent');
  await new Promise(setImmediate);
  expect(limits.spent()).toBe(100);
  mend();
  limits.journal.flush();
  expect([limits.spent(), left(limits)]).toEqual([75, 25]);
});

describe('a journal that fails', () => {
  test('refuses the call as a check that cannot be done, and loses neither credits nor rate', async () => {
    using limits = started();
    await kindOf(limits, TRIAL, 10, 6);
    const mend = limits.break('spent');
    const kinds = await Promise.all(Array.from({ length: 4 }, () => kindOf(limits, TRIAL, 10)));
    expect(new Set(kinds)).toEqual(new Set(['credits-unavailable']));
    mend();
    expect([await kindOf(limits, TRIAL, 90, 5), await kindOf(limits, TRIAL, 90, 4)]).toEqual([
      'over-rate',
      'charged',
    ]);
    expect([left(limits), limits.spent()]).toEqual([0, 100]);
  });

  test('that cannot be read refuses without a rejection, and without taking anything', async () => {
    using limits = started();
    limits.ledger.run('ALTER TABLE spent RENAME TO away');
    expect(await kindOf(limits, TRIAL, 1, 10)).toBe('credits-unavailable');
    limits.ledger.run('ALTER TABLE away RENAME TO spent');
    expect(await kindOf(limits, TRIAL, 1, 10)).toBe('charged');
    expect(left(limits)).toBe(99);
  });
});

describe('a restart', () => {
  test.each([
    ['keeps what a batch above the burst owes', 60, 0, 0, 10_200],
    ['refills what the time that went by refills, and no more', 10, 100, 0, 100],
    ['with the wall clock set back refills nothing', 10, 0, 86_400_000, 200],
    ['with the wall clock set back keeps no debt, which may be paid off', 60, 60_000, 86_400_000, 200],
  ])('%s', async (_, calls, passMs, backMs, waitMs) => {
    using limits = started();
    await kindOf(limits, PAID, 0, calls);
    limits.charging.save(100);
    limits.advance(passMs);
    limits.charging.sweep(10);
    limits.advance(-backMs);
    expect(await limits.again().charging.charge(caller(), PAID, price(0))).toMatchObject({ waitMs });
  });

  test('keeps nothing of buckets that have filled up, also of those that were forgotten before', async () => {
    using limits = started();
    const charge = (id: number, calls: number) => limits.charging.charge(caller(id), PAID, price(0, calls));
    for (let id = 1; id <= 5; id++) await charge(id, 2 * id);
    expect([limits.charging.save(3), limits.charging.save(3), bucketsIn(limits)]).toEqual([2, 0, 5]);
    limits.advance(1_000);
    limits.charging.sweep(10);
    await charge(1, 10);
    limits.charging.save(10);
    const after = limits.again();
    expect(bucketsIn(after)).toBe(4);
    const tokens = await Promise.all(
      [1, 2, 5].map((id) => after.charging.charge(caller(id), PAID, price(0, 0))),
    );
    expect(tokens).toMatchObject([0, 10, 5].map((left) => ({ rate: { tokens: left } })));
  });

  test('with a ledger that is held or takes no writes begins with whole bursts, and writes later', async () => {
    using limits = started();
    await kindOf(limits, PAID, 0, 10);
    const mend = limits.break('buckets');
    expect(limits.charging.save(100)).toBe(1);
    mend();
    expect([limits.charging.save(100), bucketsIn(limits)]).toEqual([0, 1]);
    using other = openLedger(limits.folder);
    other.run('BEGIN IMMEDIATE');
    const held = createCharging(limits.journal, limits.ledger, limits.clock);
    expect(held.charge(caller(), PAID, price(0, 10))).toMatchObject({ kind: 'charged' });
    other.run('ROLLBACK');
    expect(await kindOf(limits.again(), PAID, 0)).toBe('over-rate');
  });
});
