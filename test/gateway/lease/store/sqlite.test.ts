import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { CREDIT_RELEASE_MS, type Released } from '../../../../gateway/lease/centre-credit.ts';
import { rateStateLifeMs } from '../../../../gateway/lease/centre-rate.ts';
import type { LeaseStore } from '../../../../gateway/lease/messages.ts';
import { createSqliteStore, SQLITE_DEADLINE_MS } from '../../../../gateway/lease/store/sqlite.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../../gateway/limits/ledger.ts';
import { systemClock } from '../../../../shared/clock.ts';
import type { Store } from '../../../../shared/store/open.ts';
import { opened, temporaryFolder } from '../../../started/gateway.ts';
import { creditAsk, rateAsk, speaker } from './centres.ts';

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let ledger: Store;
/** Another process's connection. */
let other: Store;
let store: LeaseStore;
let leapMs = 0;
const released: [number, Released][] = [];
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, LEDGER_FILE);
  [ledger, other] = [opened(path, LEDGER_MIGRATIONS), opened(path, LEDGER_MIGRATIONS)];
  leapMs = 0;
  const clock = {
    ...systemClock,
    now: () => Date.now() + leapMs,
    monotonic: () => performance.now() + leapMs,
  };
  store = createSqliteStore({ ledger, clock, onReleased: (id, each) => void released.push([id, each]) });
});
afterEach(async () => {
  await store.close();
  ledger.close();
  other.close();
  folder[Symbol.dispose]();
});

/** The longest time that nothing else could run while `work` was under way. */
async function longestStallMs(work: Promise<unknown>): Promise<number> {
  let [lastMs, longestMs, done] = [performance.now(), 0, false];
  void work.finally(() => (done = true));
  while (!done) {
    await Bun.sleep(0);
    longestMs = Math.max(longestMs, performance.now() - lastMs);
    lastMs = performance.now();
  }
  return longestMs;
}

describe('while another process holds the ledger', () => {
  test('a call fails at its deadline, writes nothing, and stops nothing else meanwhile', async () => {
    other.run('BEGIN IMMEDIATE');
    const startMs = performance.now();
    const call = store.credits(speaker('a', 1), [creditAsk({ wanted: 10 })]);
    const stallMs = await longestStallMs(call);
    expect(await call).toEqual([{ kind: 'failed' }]);
    const tookMs = performance.now() - startMs;
    expect(tookMs).toBeGreaterThan(SQLITE_DEADLINE_MS / 2);
    expect(tookMs).toBeLessThan(SQLITE_DEADLINE_MS + 60);
    // A wait inside SQLite would be a stall of the whole deadline.
    expect(stallMs).toBeLessThan(SQLITE_DEADLINE_MS / 2);
    other.run('ROLLBACK');
    expect(other.query('SELECT count(*) AS rows FROM credits').get()).toEqual({ rows: 0 });
  });
  test('a call succeeds when the ledger is free in time', async () => {
    other.run('BEGIN IMMEDIATE');
    const call = store.credits(speaker('a', 1), [creditAsk({ wanted: 10 })]);
    await Bun.sleep(20);
    other.run('ROLLBACK');
    expect(await call).toMatchObject([{ kind: 'granted', grant: { allowance: 10 } }]);
  });
  test('a close ends the wait', async () => {
    other.run('BEGIN IMMEDIATE');
    const call = store.rates(speaker('a', 1), [rateAsk()]);
    await store.close();
    expect(await call).toEqual([{ kind: 'failed' }]);
    other.run('ROLLBACK');
  });
});

test('a long message is told in short transactions, between which others get their turn', async () => {
  const asks = Array.from({ length: 2_000 }, (_, accountId) => rateAsk({ accountId, wanted: 1 }));
  let turns = 0;
  let done = false;
  const call = store.rates(speaker('a', 1), asks).finally(() => (done = true));
  while (!done) {
    await Bun.sleep(0);
    turns++;
  }
  const answers = await call;
  expect(answers).toHaveLength(2_000);
  expect(turns).toBeGreaterThan(10);
});

test('a ledger that cannot be written fails every ask and rejects none', async () => {
  ledger.run('PRAGMA query_only = 1');
  const asks = [rateAsk({ accountId: 1 }), rateAsk({ accountId: 2 })];
  expect(await store.rates(speaker('a', 1), asks)).toEqual([{ kind: 'failed' }, { kind: 'failed' }]);
  expect(await store.credits(speaker('a', 1), [creditAsk()])).toEqual([{ kind: 'failed' }]);
  ledger.run('PRAGMA query_only = 0');
  expect(await store.rates(speaker('a', 2), [rateAsk()])).toMatchObject([{ kind: 'granted' }]);
});

test('rates that say no more than a new one are dropped, and others stay', async () => {
  const rows = () => other.query('SELECT account_id AS id FROM rates ORDER BY id').values().flat();
  await store.rates(speaker('a', 1), [
    rateAsk({ accountId: 1, rps: 100 }),
    rateAsk({ accountId: 2, rps: 0.01 }),
  ]);
  expect(rows()).toEqual([1, 2]);
  leapMs = 120_000;
  await store.rates(speaker('a', 2), [rateAsk({ accountId: 3 })]);
  expect(rows()).toEqual([2, 3]);
  const fast = { micro: 0, burst: 100, perMs: 100_000 };
  expect(rateStateLifeMs(fast as Parameters<typeof rateStateLifeMs>[0])).toBeLessThan(120_000);
});

test('what a node held that never came back is released once, with a row that says so', async () => {
  await store.credits(speaker('dead', 1), [creditAsk({ wanted: 100, charged: 30 })]);
  // The account's clock follows in small steps; here it went a day at once.
  other.run('UPDATE credits SET clock_ms = clock_ms + ?', [CREDIT_RELEASE_MS]);
  const [answer] = await store.credits(speaker('b', 1), [creditAsk()]);
  expect(answer).toMatchObject({ grant: { available: 970, heldByDead: 0 } });
  await store.credits(speaker('b', 2), [creditAsk()]);
  expect(other.query('SELECT account_id, node, credits FROM credit_releases').values()).toEqual([
    [1, 'dead', 100],
  ]);
  expect(released.splice(0)).toEqual([[1, { node: speaker('dead', 1).node, credits: 100 }]]);
});

test('four processes spend an account to the last credit and no further', async () => {
  const TOTAL = 4_000;
  const child = join(import.meta.dir, 'spending-child.ts');
  const children = ['a', 'b', 'c', 'd'].map((name) =>
    Bun.spawn([process.execPath, child, path, name, String(TOTAL)], { stdout: 'pipe', stderr: 'inherit' }),
  );
  const spent = await Promise.all(children.map(async ({ stdout }) => Number(await stdout.text())));
  expect(spent.reduce((sum, each) => sum + each, 0)).toBe(TOTAL);
  expect(
    other.query('SELECT sum(charged) AS charged, sum(granted - returned) AS held FROM credit_holdings').get(),
  ).toEqual({
    charged: TOTAL,
    held: TOTAL,
  });
}, 20_000);
