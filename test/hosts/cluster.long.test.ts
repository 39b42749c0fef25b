import { expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { createHost, waited } from '../started/host.ts';
import { startRedisCluster } from '../started/redis-cluster.ts';

/** The same over a Redis Cluster: every script stays in one slot, and any node says that something changed. */
test('two hosts share accounts and usage through a cluster', async () => {
  await using cluster = await startRedisCluster();
  await using backend = startBackend();
  const options = { redisUrl: cluster.url, backendUrl: backend.url };
  await using one = createHost(options);
  await using two = createHost(options);
  await one.startDeploys();
  await waited(async () => (await one.metric('deploys', 'deploys_accounts_published')) === 1);
  await two.startGateway();
  const { key, id } = await one.key('payer', 'scale');
  expect(await waited(async () => (await two.status(key)) === 200)).toBeLessThan(1_000);
  const counted = () => {
    const ledger = one.ledger();
    const sum = ledger.query<{ n: number | null }, []>('SELECT sum(calls) AS n FROM usage_hours').get()?.n;
    ledger.close();
    return sum ?? 0;
  };
  let answered = 1;
  // A process that has just begun may say 429 until its limits have found Redis.
  while (answered < 20) if ((await two.status(key)) === 200) answered++;
  await waited(() => counted() === answered);
  await one.cli('key', 'revoke', id);
  expect(await waited(async () => (await two.status(key)) === 401)).toBeLessThan(1_000);
}, 40_000);
