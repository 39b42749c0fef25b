import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { Cluster, Redis } from 'ioredis';
import { LEARNING_MS } from '../../../gateway/cluster/authority-credits.ts';
import type { CreditGrant, LeaseStore } from '../../../gateway/cluster/messages.ts';
import { leaseKey } from '../../../gateway/cluster/store-redis.ts';
import { type StartedCluster, startRedisCluster } from '../../started/redis-cluster.ts';
import { freePort } from '../../started/ports.ts';
import { answers, creditMessage, openedRedis, rateMessage, senderOf } from './stores.ts';

let cluster: StartedCluster;
let store: LeaseStore | undefined;
beforeAll(async () => void (cluster = await startRedisCluster()), 30_000);
afterEach(() => store?.close());
afterAll(() => cluster[Symbol.asyncDispose]());

const ACCOUNTS = Array.from({ length: 60 }, (_, accountId) => accountId);
let seq = 0;

/** Which accounts were answered, and how long the slowest took. */
async function send(to: LeaseStore) {
  const startMs = performance.now();
  const messages = ACCOUNTS.map((accountId) => rateMessage({ wanted: 1 }, accountId));
  const replies = await to.sync(senderOf('a', ++seq), messages);
  const granted = ACCOUNTS.filter((_, at) => replies[at] !== undefined);
  return { granted, tookMs: performance.now() - startMs };
}

test('a list of addresses survives a first one that is dead', async () => {
  store = openedRedis({ url: `redis://127.0.0.1:${freePort()},127.0.0.1:${cluster.nodes[1]?.port}` });
  await answers(store);
  expect((await send(store)).granted).toEqual(ACCOUNTS);
});

test('a node that dies takes its accounts with it and no others, makes no call wait, and comes back by itself', async () => {
  const [first] = cluster.nodes;
  store = openedRedis({ url: cluster.url, deadlineMs: 300 });
  await answers(store);
  await first?.die();
  const seen = new Set<number>();
  const untilMs = performance.now() + 1_500;
  let slowestMs = 0;
  while (performance.now() < untilMs) {
    const { granted, tookMs } = await send(store);
    seen.add(granted.length);
    slowestMs = Math.max(slowestMs, tookMs);
    await Bun.sleep(10);
  }
  expect(slowestMs).toBeLessThan(1_000);
  // Two thirds of the slots are elsewhere.
  expect(Math.min(...seen)).toBeGreaterThan(20);
  expect(Math.max(...seen)).toBeLessThan(60);
  await first?.restart('with its data');
  const backMs = performance.now() + 10_000;
  while ((await send(store)).granted.length < 60 && performance.now() < backMs) await Bun.sleep(20);
  expect((await send(store)).granted).toEqual(ACCOUNTS);
}, 20_000);

/** The store of one more process. */
async function joined(): Promise<LeaseStore & AsyncDisposable> {
  const more = openedRedis({ url: cluster.url });
  await answers(more);
  return { ...more, [Symbol.asyncDispose]: more.close };
}

test('L9 a replica that takes over without the last grants does not grant them again', async () => {
  const [, second] = cluster.nodes;
  if (second === undefined) throw new Error('no second node');
  const replica = await cluster.addReplica(second);
  const admin = new Cluster([cluster.url], { redisOptions: { maxRetriesPerRequest: null } });
  const accountId = await accountOn(admin, second.port);
  const key = leaseKey(accountId);
  const credits = async (to: LeaseStore, name: string, part: Parameters<typeof creditMessage>[0]) => {
    const [reply] = await to.sync(senderOf(name, ++seq), [creditMessage(part, accountId)]);
    return reply?.credits;
  };
  const granted = async (...args: Parameters<typeof credits>): Promise<CreditGrant> =>
    (await credits(...args)) ?? (await Bun.sleep(20), granted(...args));
  await using a = await joined();
  await using b = await joined();
  // The servers are young, and are learnt from first; by then both stores know the replica as one.
  await Bun.sleep(LEARNING_MS);
  expect(await granted(a, 'a', { wanted: 100, needed: 100 })).toMatchObject({ allowance: 100 });
  const before = await admin.getBuffer(key);
  expect(await granted(a, 'a', { held: 100, wanted: 450, needed: 450 })).toMatchObject({ allowance: 450 });
  await second.die();
  await replica.cli('CLUSTER', 'FAILOVER', 'TAKEOVER');
  // As if the second grant had not come over.
  const direct = new Redis(replica.port);
  while ((await direct.set(key, before ?? '').catch(() => undefined)) !== 'OK') await Bun.sleep(10);
  direct.disconnect();
  admin.disconnect();
  const grants = [];
  const untilMs = performance.now() + 10_000;
  while (grants.length < 2 && performance.now() < untilMs) {
    const grant = await credits(b, 'b', { wanted: 900, needed: 900 });
    if (grant !== undefined) grants.push(grant);
    await Bun.sleep(20);
  }
  expect(grants).toMatchObject([
    { allowance: 0, learning: true },
    { allowance: 0, learning: true },
  ]);
  const mine = await granted(a, 'a', { charged: 300, held: 150, wanted: 150 });
  expect(mine.allowance).toBeLessThanOrEqual(150);
  await Bun.sleep(LEARNING_MS + 100);
  const late = await granted(b, 'b', { wanted: 900, needed: 700 - mine.allowance });
  expect(late).toMatchObject({ learning: false, allowance: 700 - mine.allowance, available: 0 });
}, 60_000);

/** An account whose slot is on the node at `port`. */
async function accountOn(admin: Cluster, port: number): Promise<number> {
  await admin.ping();
  for (let account = 1; ; account++) {
    const slot = await admin.cluster('KEYSLOT', leaseKey(account));
    if (admin.slots[Number(slot)]?.[0]?.endsWith(`:${port}`)) return account;
  }
}
