import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test';
import { Redis } from 'ioredis';
import { CREDIT_RELEASE_MS, LEARNING_MS } from '../../../gateway/limits/authority-credits.ts';
import { RATE_LIFE_MS } from '../../../gateway/limits/authority-rate.ts';
import { SCAN_FORGET_MS, SCAN_LIFE_MS } from '../../../gateway/limits/authority.ts';
import type { LeaseStore, Released } from '../../../gateway/limits/messages.ts';
import { leaseKey } from '../../../gateway/limits/store-redis.ts';
import { type StartedRedis, startRedis } from '../../started/redis.ts';
import { answers, creditMessage, openedRedis, rateMessage, scanMessage, senderOf } from './stores.ts';

/** What a store leaves in Redis, and what it costs there. */
let server: StartedRedis;
let admin: Redis;
let store: LeaseStore;
const released: [number, Released][] = [];
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port);
  const onReleased = (accountId: number, each: Released) => void released.push([accountId, each]);
  store = openedRedis({ url: server.url, onReleased });
  await answers(store);
});
beforeEach(() => admin.flushall());
afterAll(async () => {
  await store.close();
  admin.disconnect();
  await server[Symbol.asyncDispose]();
});

const NODE = '11111111-1111-4111-8111-111111111111';

test('L13 every account has one key with its tag, which ends when it equals none, and never with credits', async () => {
  const plans = [
    { rps: 5, burst: 10 },
    { rps: 1_000, burst: 200 },
    { rps: 0.5, burst: 1_000 },
    { rps: 10_000_000, burst: 10_000_000 },
  ];
  const messages = plans.map((plan, at) => rateMessage({ ...plan, wanted: plan.burst, spent: at * 7 }, at));
  for (let seq = 1; seq <= 3; seq++) await store.sync(senderOf(NODE, seq), messages);
  await store.sync(senderOf(NODE, 4), [scanMessage({ wanted: 2 }, 7), creditMessage({ wanted: 10 }, 8)]);
  expect((await admin.keys('*')).toSorted()).toEqual([0, 1, 2, 3, 7, 8].map((id) => `{sluice:${id}}:lease`));
  for (const [at, { rps, burst }] of plans.entries()) {
    const ttlMs = await admin.pttl(leaseKey(at));
    // Twice the time that fills the bucket, from as far below zero as what was spent without a grant, and a minute.
    const longestMs = Math.ceil(((2 * burst + at * 7) / rps) * 1_000) + 2 * RATE_LIFE_MS + 60_000;
    expect(ttlMs).toBeLessThanOrEqual(longestMs);
    expect(ttlMs).toBeGreaterThan((burst / rps) * 1_000);
  }
  const scansMs = await admin.pttl(leaseKey(7));
  expect(scansMs > 0 && scansMs <= SCAN_LIFE_MS + SCAN_FORGET_MS).toBe(true);
  expect(await admin.pttl(leaseKey(8))).toBe(-1);
});

test('a hundred messages that come together cost two commands, and a script that the server forgot is sent again by itself', async () => {
  await admin.config('RESETSTAT');
  const messages = Array.from({ length: 100 }, (_, accountId) => rateMessage({ wanted: 1 }, accountId));
  for (let seq = 1; seq <= 10; seq++) await store.sync(senderOf(NODE, seq), messages);
  const stats = await admin.info('commandstats');
  const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  expect([calls('evalsha'), calls('eval'), calls('set')]).toEqual([20, 0, 1_000]);
  await admin.script('FLUSH');
  const again = await store.sync(senderOf(NODE, 11), messages);
  expect(again.filter((reply) => reply !== undefined).length).toBe(messages.length);
});

test('an account that one node touched takes at most 300 bytes for its rate, and no more for its credits', async () => {
  const sender = senderOf(NODE, 1_000_000, 1_763_755_000_000);
  const rate = rateMessage({ wanted: 20, spent: 900 }, 100_001);
  await store.sync(sender, [rate, creditMessage({ total: 250_000, wanted: 500 }, 100_002)]);
  for (const id of [100_001, 100_002]) {
    expect(await admin.memory('USAGE', leaseKey(id))).toBeWithin(100, 300);
  }
});

test('a value of a later version is left alone', async () => {
  await admin.set(leaseKey(1), '[3,"other"]');
  const replies = await store.sync(senderOf(NODE, 1), [rateMessage(), rateMessage({}, 2)]);
  expect(replies).toMatchObject([undefined, { rate: { granted: 0 } }]);
  expect(await admin.get(leaseKey(1))).toBe('[3,"other"]');
});

test('L8 what a node held that never came back is released once, and reported', async () => {
  // The server is young: nodes are heard first.
  await Bun.sleep(LEARNING_MS);
  await store.sync(senderOf('dead', 1), [creditMessage({ wanted: 100, needed: 100 })]);
  const [format, rate, credits, scans] = JSON.parse((await admin.get(leaseKey(1))) ?? '');
  // The account's clock, which goes on in small steps; here it goes on a day at once.
  credits[1] += CREDIT_RELEASE_MS;
  await admin.set(leaseKey(1), JSON.stringify([format, rate, credits, scans]));
  const [reply] = await store.sync(senderOf(NODE, 1), [creditMessage()]);
  expect(reply?.credits).toMatchObject({ available: 1_000, heldByOthers: 0 });
  await store.sync(senderOf(NODE, 2), [creditMessage()]);
  expect(released).toEqual([[1, { node: 'dead', credits: 100 }]]);
  // Its journal counts when it comes back.
  const [late] = await store.sync(senderOf('dead', 2, 2), [creditMessage({ charged: 250 })]);
  expect(late?.credits).toMatchObject({ allowance: 0, available: 750 });
});
