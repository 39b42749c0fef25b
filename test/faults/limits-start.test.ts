import { expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { freePort, startRedis } from '../started/redis.ts';
import { until } from '../started/stack.ts';
import { startCrew } from './gateway-crew.ts';

const PLANS =
  '[plans.paid]\nrps = 1000\nburst = 1000\n[plans.prepaid]\nrps = 1000\nburst = 1000\ncredits = 1000\n';

test('C6 a gateway starts while its Redis is not there: paid plans are served, trials are 503, both when it has come', async () => {
  await using backend = startBackend();
  const port = freePort();
  const storageLines = `redis = "redis://127.0.0.1:${port}"\n`;
  await using crew = await startCrew({ backendUrl: backend.url, processes: 2, extra: PLANS, storageLines });
  const [paid, trial] = [crew.key('paid'), crew.key('prepaid', 1_000)];
  for (let i = 0; i < 20; i++) expect((await crew.post(paid)).status).toBe(200);
  for (let i = 0; i < 4; i++) {
    const answer = await crew.post(trial);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await answer.json()).toMatchObject({
      error: { code: -503, message: 'Credit check unavailable' },
      id: 1,
    });
  }
  // An operator is told, once a process.
  const isOut = async () =>
    (await crew.post(paid)).ok && (await crew.metric('sluice_gateway_store_out')) === 1;
  await until(isOut);
  const count = (line: string) => crew.printed().split(line).length - 1;
  await until(async () => count('the store of shared limits does not answer') > 0);
  expect(count('the store of shared limits does not answer')).toBeLessThanOrEqual(2);
  expect(await crew.metric('sluice_gateway_store_messages_total{outcome="failed"}')).toBeGreaterThan(0);

  await using _redis = await startRedis([], port);
  await until(async () => (await crew.post(trial)).ok);
  await until(async () => !(await isOut()));
  await until(async () => count('the store of shared limits answers again') > 0);
  expect(await crew.metric('sluice_gateway_store_messages_total{outcome="answered"}')).toBeGreaterThan(0);
}, 30_000);
