import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { createBucketStore, createCharging } from '../../../gateway/limits/charge.ts';
import { createJournal } from '../../../gateway/limits/journal.ts';
import { LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../../shared/keys/api-key.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const PAID: Plan = { rps: 5, burst: 10, credits: undefined, batchMax: 100, scans: 1 };
const keyId = keyIdOf(hashOf(makeApiKey((bytes) => new Uint8Array(bytes))));
const caller = (accountId = 1) => ({ keyId, accountId, plan: 'any', creditsGranted: 0 });
const calls = (count: number) => ({ calls: count, credits: 0 });

/** A gateway's charging that can be started again, with another monotonic clock, over the same ledger. */
function restartable() {
  const folder = temporaryFolder();
  const store = opened(join(folder.path, 'ledger.db'), LEDGER_MIGRATIONS);
  const time = createVirtualClock();
  let bootMs = 0;
  const clock = { ...time.clock, monotonic: () => time.clock.monotonic() - bootMs };
  const start = () =>
    createCharging(createJournal(store, 'g', setImmediate), clock, createBucketStore(store, clock));
  return {
    start,
    reboot: () => void (bootMs = time.clock.monotonic() - 5),
    advance: time.advance,
    store,
    rows: () => store.query<{ n: number }, []>('SELECT count(*) AS n FROM buckets').get()?.n,
    [Symbol.dispose]() {
      store.close();
      folder[Symbol.dispose]();
    },
  };
}

describe('a restart', () => {
  test('does not refill a burst', async () => {
    using gateway = restartable();
    const before = gateway.start();
    await before.charge(caller(), PAID, calls(10));
    before.save(100);
    gateway.reboot();
    expect(await gateway.start().charge(caller(), PAID, calls(1))).toMatchObject({
      kind: 'over-rate',
      waitMs: 200,
    });
  });

  test('refills what the time that went by refills, and no more', async () => {
    using gateway = restartable();
    const before = gateway.start();
    await before.charge(caller(), PAID, calls(10));
    gateway.advance(400);
    before.save(100);
    gateway.reboot();
    gateway.advance(600);
    const after = gateway.start();
    expect((await after.charge(caller(), PAID, calls(6))).kind).toBe('over-rate');
    expect((await after.charge(caller(), PAID, calls(5))).kind).toBe('charged');
  });

  test('keeps what a batch above the burst owes', async () => {
    using gateway = restartable();
    const before = gateway.start();
    await before.charge(caller(), PAID, calls(60));
    before.save(100);
    gateway.reboot();
    expect(await gateway.start().charge(caller(), PAID, calls(1))).toMatchObject({ waitMs: 10_200 });
  });

  test('with the wall clock set back refills nothing', async () => {
    using gateway = restartable();
    const before = gateway.start();
    await before.charge(caller(), PAID, calls(10));
    before.save(100);
    gateway.advance(-86_400_000);
    expect(await gateway.start().charge(caller(), PAID, calls(1))).toMatchObject({ waitMs: 200 });
  });

  test('takes a new plan of the account at once', async () => {
    using gateway = restartable();
    const before = gateway.start();
    await before.charge(caller(), PAID, calls(10));
    before.save(100);
    gateway.advance(100);
    const wide = { ...PAID, rps: 100, burst: 200 };
    expect(await gateway.start().charge(caller(), wide, calls(10))).toMatchObject({ kind: 'charged' });
  });
});

describe('the ledger', () => {
  test('holds buckets that are not full, and loses those that a sweep forgets', async () => {
    using gateway = restartable();
    const charging = gateway.start();
    for (let id = 1; id <= 5; id++) await charging.charge(caller(id), PAID, calls(id));
    expect(charging.save(100)).toBe(0);
    expect(gateway.rows()).toBe(5);
    gateway.advance(600);
    charging.sweep();
    charging.save(100);
    expect(gateway.rows()).toBe(2);
    gateway.advance(600);
    gateway.start();
    expect(gateway.rows()).toBe(0);
  });

  test('is written in parts, each account once for all of its calls', async () => {
    using gateway = restartable();
    const charging = gateway.start();
    for (let i = 0; i < 30; i++) await charging.charge(caller(i % 3), PAID, calls(1));
    expect(charging.save(2)).toBe(1);
    expect(gateway.rows()).toBe(2);
    expect(charging.save(2)).toBe(0);
    expect(gateway.rows()).toBe(3);
  });

  test('that cannot be written is written later, and refuses no call', async () => {
    using gateway = restartable();
    const charging = gateway.start();
    await charging.charge(caller(), PAID, calls(10));
    gateway.store.run('ALTER TABLE buckets RENAME TO away');
    expect(charging.save(100)).toBe(1);
    gateway.store.run('ALTER TABLE away RENAME TO buckets');
    expect(charging.save(100)).toBe(0);
    expect(gateway.rows()).toBe(1);
  });

  test('that cannot be read leaves whole bursts', async () => {
    using gateway = restartable();
    const store = createBucketStore(gateway.store, createVirtualClock().clock);
    gateway.store.run('ALTER TABLE buckets RENAME TO away');
    expect(store.load().size).toBe(0);
  });
});
