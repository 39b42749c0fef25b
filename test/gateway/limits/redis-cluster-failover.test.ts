import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Cluster, Redis } from 'ioredis';
import type { CreditGrant, LeaseStore } from '../../../gateway/limits/messages.ts';
import { LEARNING_MS } from '../../../gateway/limits/authority-credits.ts';
import { leaseKey } from '../../../gateway/limits/store-redis.ts';
import { type StartedCluster, startRedisCluster } from '../../started/redis-cluster.ts';
import type { StartedRedis } from '../../started/redis.ts';
import { answers, creditMessage, openedRedis, senderOf } from './stores.ts';

let cluster: StartedCluster;
let replica: StartedRedis;
const stores: LeaseStore[] = [];
beforeAll(async () => {
  cluster = await startRedisCluster();
  replica = await cluster.addReplica(second());
}, 30_000);
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await cluster[Symbol.asyncDispose]();
});

/** The node whose replica takes over. */
function second(): StartedRedis {
  const [, node] = cluster.nodes;
  if (node === undefined) throw new Error('no second node');
  return node;
}

async function joined(): Promise<LeaseStore> {
  const store = openedRedis({ url: cluster.url });
  stores.push(store);
  await answers(store);
  return store;
}

let seq = 0;

test('L9 a replica that takes over without the last grants does not grant them again', async () => {
  const admin = new Cluster([cluster.url], { redisOptions: { maxRetriesPerRequest: null } });
  const accountId = await accountOn(admin, second().port);
  const key = leaseKey(accountId);
  const credits = async (to: LeaseStore, name: string, part: Parameters<typeof creditMessage>[0]) => {
    const [reply] = await to.sync(senderOf(name, ++seq), [creditMessage(part, accountId)]);
    return reply?.credits;
  };
  const granted = async (...args: Parameters<typeof credits>): Promise<CreditGrant> =>
    (await credits(...args)) ?? (await Bun.sleep(20), granted(...args));
  const [a, b] = await Promise.all([joined(), joined()]);
  // The servers are young, and are learnt from first; by then both stores know the replica as one.
  await Bun.sleep(LEARNING_MS);
  expect(await granted(a, 'a', { wanted: 100, needed: 100 })).toMatchObject({ allowance: 100 });
  const before = await admin.getBuffer(key);
  expect(await granted(a, 'a', { held: 100, wanted: 450, needed: 450 })).toMatchObject({ allowance: 450 });
  await second().die();
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
}, 30_000);

/** An account whose slot is on the node at `port`. */
async function accountOn(admin: Cluster, port: number): Promise<number> {
  await admin.ping();
  for (let account = 1; ; account++) {
    const slot = await admin.cluster('KEYSLOT', leaseKey(account));
    if (admin.slots[Number(slot)]?.[0]?.endsWith(`:${port}`)) return account;
  }
}
