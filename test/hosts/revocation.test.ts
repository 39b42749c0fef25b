import { afterAll, beforeAll, expect, test } from 'bun:test';
import { sluiceAlone } from '../cli/sluice.ts';
import { startBackend } from '../fakes/backend.ts';
import { createHost, waited } from '../started/host.ts';
import { freePort } from '../started/ports.ts';
import { startRedis } from '../started/redis.ts';

let backend: ReturnType<typeof startBackend>;
beforeAll(() => void (backend = startBackend()));
afterAll(() => backend[Symbol.asyncDispose]());

async function revoke(host: ReturnType<typeof createHost>) {
  const { id } = await host.key(`payer-${performance.now()}`, 'pro');
  const { code, out, err } = await sluiceAlone(host.folder, ['key', 'revoke', id, '--config', host.config]);
  expect([code, out]).toEqual([0, `Key ${id} has been revoked.\n`]);
  return err;
}

const SAID = 'Gateways on other hosts accept the key until deploys can publish the revocation:';

test('M6 key revoke says when other hosts cannot be told now: without Redis', async () => {
  await using host = createHost({ redisUrl: `redis://127.0.0.1:${freePort()}`, backendUrl: backend.url });
  expect(await revoke(host)).toBe(`${SAID} Redis does not answer.\n`);
});

test('M6 key revoke says when other hosts cannot be told now: without deploys, and not with it', async () => {
  await using redis = await startRedis();
  await using host = createHost({ redisUrl: redis.url, backendUrl: backend.url });
  await using other = createHost({ redisUrl: redis.url, backendUrl: backend.url });
  expect(await revoke(host)).toBe(`${SAID} no deploys publishes accounts.\n`);
  await host.startDeploys();
  await waited(async () => (await host.metric('deploys', 'deploys_accounts_published')) === 1);
  expect(await revoke(host)).toBe('');
  expect(await revoke(other)).toBe(`${SAID} Redis has the accounts of another database.\n`);
}, 30_000);
