import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import type { LeaseStore } from '../../../gateway/limits/messages.ts';
import { type StartedCluster, startRedisCluster } from '../../started/redis-cluster.ts';
import { freePort } from '../../started/ports.ts';
import { answers, openedRedis, rateMessage, senderOf } from './stores.ts';

let cluster: StartedCluster;
let store: LeaseStore | undefined;
beforeAll(async () => void (cluster = await startRedisCluster()), 30_000);
afterEach(() => store?.close());
afterAll(() => cluster[Symbol.asyncDispose]());

const ACCOUNTS = Array.from({ length: 60 }, (_, accountId) => accountId);
let seq = 0;
/** Long enough for the living nodes of a busy machine, and far below the time until the dead one is back. */
const DEADLINE_MS = 300;

/** Which accounts were answered, and how long the slowest took. */
async function send(to: LeaseStore) {
  const startMs = performance.now();
  const messages = ACCOUNTS.map((accountId) => rateMessage({ wanted: 1 }, accountId));
  const replies = await to.sync(senderOf('a', ++seq), messages);
  const granted = ACCOUNTS.filter((_, at) => replies[at] !== undefined);
  return { granted, tookMs: performance.now() - startMs };
}

test('one address of a cluster is enough, and a list of them survives a first one that is dead', async () => {
  store = openedRedis({ url: `redis://127.0.0.1:${freePort()},127.0.0.1:${cluster.nodes[1]?.port}` });
  await answers(store);
  await store.close();
  store = openedRedis({ url: cluster.url });
  await answers(store);
  expect((await send(store)).granted).toEqual(ACCOUNTS);
});

test('a node that dies takes its accounts with it and no others, makes no call wait, and comes back by itself', async () => {
  const [first] = cluster.nodes;
  store = openedRedis({ url: cluster.url, deadlineMs: DEADLINE_MS });
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
  expect(slowestMs).toBeLessThan(3 * DEADLINE_MS);
  // Two thirds of the slots are elsewhere.
  expect(Math.min(...seen)).toBeGreaterThan(20);
  expect(Math.max(...seen)).toBeLessThan(60);
  await first?.restart('with its data');
  const backMs = performance.now() + 10_000;
  while ((await send(store)).granted.length < 60 && performance.now() < backMs) await Bun.sleep(20);
  expect((await send(store)).granted).toEqual(ACCOUNTS);
}, 20_000);
