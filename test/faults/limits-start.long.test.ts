import { expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { startRedis } from '../started/redis.ts';
import { until } from '../started/stack.ts';
import { startCrew } from './gateway-crew.ts';

const PLANS =
  '[plans.paid]\nrps = 1000\nburst = 1000\n[plans.prepaid]\nrps = 1000\nburst = 1000\ncredits = 1000\n';

test('C6 processes start while their Redis is not there: paid plans are served, trials are 503, both when it is back', async () => {
  await using backend = startBackend();
  await using redis = await startRedis();
  const storageLines = `redis = "${redis.url}"\n`;
  await using crew = await startCrew({ backendUrl: backend.url, processes: 2, extra: PLANS, storageLines });
  const [paid, trial] = [crew.key('paid'), crew.key('prepaid', 1_000)];
  await until(async () => (await crew.post(trial)).ok);
  await redis.die();
  const before = new Set(crew.processes().values());
  for (const pid of before) process.kill(pid, 'SIGKILL');
  await until(async () => [...crew.processes().values()].every((pid) => !before.has(pid)));
  await until(async () => (await crew.metric('sluice_gateway_processes')) === 2);

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

  await redis.restart('with its data');
  await until(async () => (await crew.post(trial)).ok);
  await until(async () => !(await isOut()));
  await until(async () => count('no longer: the store of shared limits') > 0);
  expect(await crew.metric('sluice_gateway_store_messages_total{outcome="answered"}')).toBeGreaterThan(0);
}, 30_000);
