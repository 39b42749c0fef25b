import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test';
import { Redis } from 'ioredis';
import { CREDIT_RELEASE_MS, type Released } from '../../../../gateway/lease/centre-credit.ts';
import { RATE_LIFE_MS } from '../../../../gateway/lease/centre-rate.ts';
import { SCAN_STATE_LIFE_MS } from '../../../../gateway/lease/centre-scans.ts';
import type { LeaseStore } from '../../../../gateway/lease/messages.ts';
import { CREDIT_SCRIPT, LEARNING_MS, RATE_SCRIPT } from '../../../../gateway/lease/store/scripts.ts';
import { type StartedRedis, startRedis } from '../../../started/redis.ts';
import { answers, creditAsk, openedRedis, rateAsk, scanAsk, speaker } from './centres.ts';

/** What a store leaves in Redis, and what it costs there (limits.md tests 13, 14; invariant I6). */
let server: StartedRedis;
let admin: Redis;
let store: LeaseStore;
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port);
  store = openedRedis({ url: server.url, deadlineMs: 5_000 });
  await answers(store);
});
beforeEach(() => admin.flushall());
afterAll(async () => {
  await store.close();
  admin.disconnect();
  await server[Symbol.asyncDispose]();
});

const NODE = '11111111-1111-4111-8111-111111111111';

async function keys(): Promise<string[]> {
  const found: string[] = [];
  for await (const some of admin.scanStream({ count: 1_000 })) found.push(...some);
  return found;
}

test('L13 every key has the tag of its account; a rate ends when it says no more than a new one, credits never', async () => {
  const plans = [
    { rps: 5, burst: 10 },
    { rps: 1_000, burst: 200 },
    { rps: 0.5, burst: 1_000 },
    { rps: 10_000_000, burst: 10_000_000 },
  ];
  const asks = plans.map((plan, at) =>
    rateAsk({ accountId: at + 1, ...plan, wanted: plan.burst, spent: at * 7 }),
  );
  for (let seq = 1; seq <= 3; seq++) await store.rates(speaker(NODE, seq), asks);
  await store.credits(speaker(NODE, 4), [creditAsk({ accountId: 1, wanted: 10 })]);
  await store.scans(speaker(NODE, 5), [scanAsk({ accountId: 1, wanted: 2 })]);
  const found = await keys();
  const rates = plans.map((_, at) => `{sluice:${at + 1}}:rate`);
  expect(found.toSorted()).toEqual(['{sluice:1}:credit', '{sluice:1}:scans', ...rates].toSorted());
  const scansMs = await admin.pttl('{sluice:1}:scans');
  expect(scansMs > 0 && scansMs <= SCAN_STATE_LIFE_MS).toBe(true);
  for (const [at, { rps, burst }] of plans.entries()) {
    const ttlMs = await admin.pttl(`{sluice:${at + 1}}:rate`);
    // Twice the time that fills the bucket, from as far below zero as what was spent without a grant, and a minute.
    const longestMs = Math.ceil(((2 * burst + at * 7) / rps) * 1_000) + 2 * RATE_LIFE_MS + 60_000;
    expect(ttlMs).toBeLessThanOrEqual(longestMs);
    expect(ttlMs).toBeGreaterThan((burst / rps) * 1_000);
  }
  expect(await admin.pttl('{sluice:1}:credit')).toBe(-1);
});

test('a hundred asks that come together cost one command, and a script that the server forgot is sent again by itself', async () => {
  const calls = async () => {
    const stats = await admin.info('commandstats');
    return (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  };
  await admin.config('RESETSTAT');
  const asks = Array.from({ length: 100 }, (_, accountId) => rateAsk({ accountId, wanted: 1 }));
  for (let seq = 1; seq <= 10; seq++) await store.rates(speaker(NODE, seq), asks);
  const steady = await calls();
  expect([steady('evalsha'), steady('eval'), steady('get'), steady('set')]).toEqual([10, 0, 1_000, 1_000]);
  await admin.script('FLUSH');
  const again = await store.rates(speaker(NODE, 11), asks);
  expect(again.every(({ kind }) => kind === 'granted')).toBe(true);
});

test('an account that one node touched takes at most 260 bytes for its rate, and no more for its credits', async () => {
  const ACCOUNTS = 20_000;
  const used = async () => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1]);
  for (const kind of ['rate', 'credit'] as const) {
    await admin.flushall();
    const before = await used();
    for (let from = 0; from < ACCOUNTS; from += 500) {
      const ids = Array.from({ length: 500 }, (_, at) => 100_000 + from + at);
      const by = speaker(NODE, 1_000 + from, 1_763_755_000_000);
      if (kind === 'rate')
        await store.rates(
          by,
          ids.map((accountId) => rateAsk({ accountId, wanted: 20, spent: 900 })),
        );
      else
        await store.credits(
          by,
          ids.map((accountId) => creditAsk({ accountId, total: 250_000, wanted: 500 })),
        );
    }
    expect(await admin.dbsize()).toBe(ACCOUNTS);
    expect(((await used()) - before) / ACCOUNTS).toBeLessThan(260);
  }
}, 15_000);

test('a value of a later version is left alone', async () => {
  const later = await admin.eval(
    "return redis.call('SET', KEYS[1], cmsgpack.pack({2, 'other'}))",
    1,
    '{sluice:1}:rate',
  );
  expect(later).toBe('OK');
  const before = await admin.getBuffer('{sluice:1}:rate');
  expect(await store.rates(speaker(NODE, 1), [rateAsk(), rateAsk({ accountId: 2 })])).toMatchObject([
    { kind: 'failed' },
    { kind: 'granted' },
  ]);
  expect(await admin.getBuffer('{sluice:1}:rate')).toEqual(before);
});

test('L8 what a node held that never came back is released once, and the ledger is told', async () => {
  const SOON_MS = 50;
  const soon = CREDIT_SCRIPT.replaceAll(String(CREDIT_RELEASE_MS), String(SOON_MS));
  expect(soon).not.toBe(CREDIT_SCRIPT);
  const released: [number, Released][] = [];
  const hasty = openedRedis({
    url: server.url,
    scripts: { rate: RATE_SCRIPT, credit: soon },
    onReleased: (accountId, each) => void released.push([accountId, each]),
  });
  await answers(hasty);
  // The server is young: it is learnt from first.
  await Bun.sleep(LEARNING_MS);
  await hasty.credits(speaker('dead', 1), [creditAsk({ wanted: 100, needed: 100 })]);
  await Bun.sleep(SOON_MS + 10);
  const [answer] = await hasty.credits(speaker(NODE, 1), [creditAsk()]);
  expect(answer).toMatchObject({ grant: { available: 1_000, heldByOthers: 0, heldByDead: 0 } });
  await hasty.credits(speaker(NODE, 2), [creditAsk()]);
  expect(released).toEqual([[1, { node: speaker('dead', 1).node, credits: 100 }]]);
  await hasty.close();
});
