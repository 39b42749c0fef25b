import { afterEach, beforeEach, expect, test } from 'bun:test';
import { result, startBackend } from '../fakes/backend.ts';
import { hasEnded } from '../started/process.ts';
import { until } from '../started/stack.ts';
import { CALL, startCrew } from './gateway-crew.ts';

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

const start = (processes = 3) => startCrew({ backendUrl: backend.url, processes });

test('I1 a drain sends pooled callers away without a reset: every answer that comes is whole, and the last of its connection says so', async () => {
  await using crew = await start();
  const key = crew.key('scale');
  const enough = Promise.withResolvers<void>();
  let answers = 0;
  const caller = async () => {
    for (;;) {
      const response = await crew.post(key, CALL, { keepalive: true });
      await response.text();
      if (++answers === 500) enough.resolve();
      if (response.headers.get('connection') === 'close') return response.status;
      await Bun.sleep(20); // a pooled connection rests between two requests
    }
  };
  const callers = Array.from({ length: 32 }, caller);
  await enough.promise;
  crew.kill('SIGTERM');
  expect(new Set(await Promise.all(callers))).toEqual(new Set([200]));
  expect(await crew.exited).toBe(0);
});

test('I1 a drain says so at /health, and lets an answer under way end', async () => {
  await using crew = await start(2);
  const key = crew.key('scale');
  const gate = Promise.withResolvers<void>();
  backend.script(async (seen) => {
    await gate.promise;
    return result(seen, '1');
  });
  const health = async () => {
    const response = await fetch(new URL('/health', crew.url), { keepalive: false });
    return `${response.status} ${await response.text()}`;
  };
  expect(await health()).toBe('200 ok\n');
  const underWay = crew.post(key);
  await until(async () => backend.seen.length === 1);
  crew.kill('SIGTERM');
  await until(async () => (await health()) === '503 draining\n');
  await until(() =>
    health().then(
      () => false,
      () => true,
    ),
  );
  gate.resolve();
  expect((await underWay).status).toBe(200);
  expect(await crew.exited).toBe(0);
});

test('I1 a drain follows when the supervisor is killed: no process stays behind', async () => {
  await using crew = await start(2);
  const pids = [...crew.processes().values()];
  crew.kill('SIGKILL');
  await until(async () => pids.every(hasEnded));
});
