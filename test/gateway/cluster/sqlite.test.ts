import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { CREDIT_RELEASE_MS } from '../../../gateway/cluster/authority-credits.ts';
import { type LeaseStore, type Released, STORE_DEADLINE_MS } from '../../../gateway/cluster/messages.ts';
import { createSqliteStore } from '../../../gateway/cluster/store-sqlite.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { systemClock } from '../../../shared/clock.ts';
import type { Store } from '../../../shared/store/open.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { creditMessage, rateMessage, senderOf } from './stores.ts';

let folder: ReturnType<typeof temporaryFolder>;
let ledger: Store;
/** Another process's connection. */
let other: Store;
let store: LeaseStore;
let leapMs: number;
let released: [number, Released][];
beforeEach(() => {
  folder = temporaryFolder();
  const path = join(folder.path, LEDGER_FILE);
  [ledger, other] = [opened(path, LEDGER_MIGRATIONS), opened(path, LEDGER_MIGRATIONS)];
  [leapMs, released] = [0, []];
  const now = () => Date.now() + leapMs;
  const clock = { ...systemClock, now, monotonic: () => performance.now() + leapMs };
  store = createSqliteStore(ledger, { clock, onReleased: (id, each) => void released.push([id, each]) });
});
afterEach(async () => {
  await store.close();
  other.close();
  folder[Symbol.dispose]();
});

/** How often something else could run while `work` was under way. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let [turns, done] = [0, false];
  void work.finally(() => (done = true));
  for (; !done; turns++) await Bun.sleep(0);
  return turns;
}

describe('while another process holds the ledger', () => {
  const call = () => store.sync(senderOf('a', 1), [creditMessage({ wanted: 10 })]);
  beforeEach(() => void other.run('BEGIN IMMEDIATE'));

  test('a call fails at its deadline, writes nothing, and stops nothing else meanwhile', async () => {
    const startMs = performance.now();
    const calling = call();
    // A wait inside SQLite would be one turn.
    expect(await turnsDuring(calling)).toBeGreaterThan(10);
    expect(await calling).toEqual([undefined]);
    expect(performance.now() - startMs).toBeWithin(STORE_DEADLINE_MS / 2, 5 * STORE_DEADLINE_MS);
    other.run('ROLLBACK');
    expect(other.query('SELECT count(*) FROM leases').values()).toEqual([[0]]);
  });

  test('a call succeeds when the ledger is free in time', async () => {
    const calling = call();
    await Bun.sleep(20);
    other.run('ROLLBACK');
    expect(await calling).toMatchObject([{ credits: { allowance: 10 } }]);
  });
});

test('many messages are answered in turns, between which requests are served', async () => {
  const messages = Array.from({ length: 2_000 }, (_, accountId) => rateMessage({}, accountId));
  expect(await turnsDuring(store.sync(senderOf('a', 1), messages))).toBeGreaterThan(10);
});

test('a ledger that cannot be written gives no reply and rejects nothing', async () => {
  ledger.run('PRAGMA query_only = 1');
  const messages = [rateMessage(), creditMessage({}, 2)];
  expect(await store.sync(senderOf('a', 1), messages)).toEqual([undefined, undefined]);
  ledger.run('PRAGMA query_only = 0');
  expect(await store.sync(senderOf('a', 2), [rateMessage()])).toMatchObject([{ rate: {} }]);
});

test('states that say no more than a new one are dropped, and others stay', async () => {
  const rows = () => other.query('SELECT account_id AS id FROM leases ORDER BY id').values().flat();
  const slow = rateMessage({ rps: 0.01 }, 2);
  await store.sync(senderOf('a', 1), [rateMessage({ rps: 100 }, 1), slow, creditMessage({}, 4)]);
  expect(rows()).toEqual([1, 2, 4]);
  leapMs = 120_000;
  await store.sync(senderOf('a', 2), [rateMessage({}, 3)]);
  expect(rows()).toEqual([2, 3, 4]);
});

test('what a node held that never came back is released once, and reported', async () => {
  await store.sync(senderOf('dead', 1), [creditMessage({ wanted: 100, charged: 30 })]);
  // The account's clock goes on in small steps; here it goes on a day at once.
  other.run("UPDATE leases SET state = json_set(state, '$[2][1]', ?)", [CREDIT_RELEASE_MS]);
  const [reply] = await store.sync(senderOf('b', 1), [creditMessage()]);
  expect(reply?.credits).toMatchObject({ available: 970, heldByOthers: 0 });
  await store.sync(senderOf('b', 2), [creditMessage()]);
  expect(released).toEqual([[1, { node: 'dead', credits: 100 }]]);
});
