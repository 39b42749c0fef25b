import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import type { LeaseStore } from '../../../../gateway/lease/messages.ts';
import { type StartedCluster, startRedisCluster } from '../../../started/redis-cluster.ts';
import { freePort } from '../../../started/redis.ts';
import { answers, openedRedis, rateAsk, speaker } from './centres.ts';

let cluster: StartedCluster;
let store: LeaseStore | undefined;
beforeAll(async () => void (cluster = await startRedisCluster()), 30_000);
afterEach(() => store?.close());
afterAll(() => cluster[Symbol.asyncDispose]());

const ACCOUNTS = Array.from({ length: 60 }, (_, accountId) => accountId);
let seq = 0;

/** Which accounts were answered, and how long the slowest took. */
async function tell(to: LeaseStore) {
  const startMs = performance.now();
  const asks = ACCOUNTS.map((accountId) => rateAsk({ accountId, wanted: 1 }));
  const all = await to.rates(speaker('a', ++seq), asks);
  const granted = ACCOUNTS.filter((_, at) => all[at]?.kind === 'granted');
  return { granted, tookMs: performance.now() - startMs };
}

test('one address of a cluster is enough, and a list of them survives a first one that is dead', async () => {
  store = openedRedis({ url: `redis://127.0.0.1:${freePort()},127.0.0.1:${cluster.nodes[1]?.port}` });
  await answers(store);
  await store.close();
  store = openedRedis({ url: cluster.url });
  await answers(store);
  expect((await tell(store)).granted).toEqual(ACCOUNTS);
});

test('a node that dies takes its accounts with it and no others, makes nobody wait, and comes back by itself', async () => {
  const [first] = cluster.nodes;
  store = openedRedis({ url: cluster.url });
  await answers(store);
  await first?.die();
  const seen = new Set<number>();
  const untilMs = performance.now() + 1_500;
  let slowestMs = 0;
  while (performance.now() < untilMs) {
    const { granted, tookMs } = await tell(store);
    seen.add(granted.length);
    slowestMs = Math.max(slowestMs, tookMs);
    await Bun.sleep(10);
  }
  expect(slowestMs).toBeLessThan(160);
  // Two thirds of the slots are elsewhere.
  expect(Math.min(...seen)).toBeGreaterThan(20);
  expect(Math.max(...seen)).toBeLessThan(60);
  await first?.restart('with its data');
  const backMs = performance.now() + 10_000;
  while ((await tell(store)).granted.length < 60 && performance.now() < backMs) await Bun.sleep(20);
  expect((await tell(store)).granted).toEqual(ACCOUNTS);
}, 20_000);
