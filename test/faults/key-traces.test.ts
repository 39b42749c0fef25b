import { expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startBackend } from '../fakes/backend.ts';
import { startRedis } from '../started/redis.ts';
import { until } from '../started/stack.ts';
import { CALL, startCrew } from '../started/crew.ts';

const PLANS = '[plans.prepaid]\nrps = 1000\nburst = 1000\ncredits = 1000\n[plans.slow]\nrps = 1\nburst = 1\n';
/** Of a key's 38 characters only those behind its prefix and before its last four are secret. */
const SECRET = [11, -4] as const;

test('E1 no key is in what a gateway logs, answers, measures, stores or sends to Redis (§1.2)', async () => {
  await using backend = startBackend();
  await using redis = await startRedis();
  await using crew = await startCrew({
    backendUrl: backend.url,
    processes: 2,
    extra: PLANS,
    storageLines: `redis = "${redis.url}"\n`,
  });
  const good = crew.key('prepaid', 1_000);
  const keys = [good, crew.key('slow'), `${good.slice(0, 20)}${good.slice(20).toLowerCase()}`];
  await until(async () => (await crew.post(good)).ok);
  const said: string[] = [];
  const ask = async (path: string, headers: Record<string, string>, body = CALL) => {
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } };
    const answer = await fetch(new URL(path, crew.url), init);
    said.push(await answer.text(), JSON.stringify([...answer.headers]));
  };
  const askAll = async () => {
    for (const key of keys) {
      await ask('/', { 'x-token': key });
      await ask('/', { authorization: `Bearer ${key}` });
      await ask(`/?api-key=${key}`, {});
      await ask(`/nowhere?api-key=${key}`, {}, 'no json');
      await ask(`/?api-key=${key}x`, { 'x-token': key });
    }
  };
  await askAll();
  const names = (await redis.cli('--scan')).split('\n');
  expect(names.length).toBeGreaterThan(0);
  const kept = await Promise.all(names.map(async (name) => name + (await redis.cli('DUMP', name))));
  // A store and a backend that fail are logged.
  await redis.die();
  await backend[Symbol.asyncDispose]();
  await askAll();
  const metrics = await crew.metricsText();
  crew.kill('SIGTERM');
  await crew.exited;
  const files = readdirSync(crew.folder).map((name) => readFileSync(join(crew.folder, name), 'latin1'));
  const outputs = {
    said: said.join(),
    metrics,
    log: crew.printed() + (await crew.stderr),
    kept: kept.join(),
  };
  for (const text of Object.values(outputs)) expect(text.length).toBeGreaterThan(100);
  for (const key of keys) {
    const secret = key.slice(...SECRET);
    const traces = Object.entries({ ...outputs, files: files.join() }).filter(([, text]) =>
      text.includes(secret),
    );
    expect(traces.map(([where]) => where)).toEqual([]);
  }
}, 40_000);
