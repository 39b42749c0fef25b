import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { decode } from '../../gateway/cluster/authority.ts';
import { leaseKey } from '../../gateway/cluster/store-redis.ts';
import { takeLock } from '../../shared/store/lock.ts';
import { startBackend, streamed } from '../fakes/backend.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { freePort } from '../started/ports.ts';
import { hasEnded, ROOT, runToEnd, startProcess } from '../started/process.ts';
import { startRedis } from '../started/redis.ts';
import { until } from '../started/stack.ts';
import { crewConfig, type CrewOptions, startCrew } from '../started/crew.ts';

setDefaultTimeout(40_000);

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

const PLANS =
  '[plans.one]\nrps = 1000\nburst = 1000\nscans = 1\n[plans.many]\nrps = 1000\nburst = 1000\nscans = 100\n';

const start = (options: Partial<CrewOptions> = {}) =>
  startCrew({ backendUrl: backend.url, processes: 2, extra: PLANS, ...options });

/** Scans that are the same would share one permit. */
const scanOf = (id: number) => `{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts","params":["${id}"]}`;

test('M19 a scan that waits for another process when a stop comes has its permit and its whole answer', async () => {
  await using redis = await startRedis();
  await using crew = await start({ storageLines: `redis = "${redis.url}"\n` });
  const key = crew.key('one');
  await until(async () =>
    (await Promise.all([1, 2, 3, 4].map(crew.health))).every((said) => said === '200 ok'),
  );
  const gate = Promise.withResolvers<void>();
  backend.script(async (seen) => {
    if (backend.seen.length === 1) await gate.promise;
    return streamed(seen, 1);
  });
  let scans = 0;
  const scan = () =>
    crew.post(key, scanOf(++scans)).then(
      async (answer) => `${answer.status} ${(await answer.text()).length > 1 << 20}`,
      (error: Error) => error.message,
    );
  const running = scan();
  await until(async () => backend.seen.length === 1);
  const waiting: ReturnType<typeof scan>[] = [];
  const isWaiting = async () => {
    const state = decode((await redis.cli('GET', leaseKey(1))) || undefined);
    return state.scans?.nodes.filter(({ sinceMs }) => sinceMs > 0).length === 1;
  };
  await until(async () => {
    if (waiting.length < 6) waiting.push(scan());
    return isWaiting();
  });
  crew.kill('SIGTERM');
  await until(async () => (await crew.health()) === '503 draining');
  gate.resolve();
  const answers = await Promise.all([running, ...waiting]);
  // Those above the few that may wait in one process are refused when they come.
  const admitted = answers.filter((answer) => !answer.startsWith('429'));
  expect(admitted.length).toBeGreaterThan(1);
  expect(new Set(admitted)).toEqual(new Set(['200 true']));
  expect(await crew.exited).toBe(0);
});

describe('M20 after the death of a supervisor', () => {
  /** A backend that keeps scans until the gate opens, and a call of them in every process. */
  async function withScans(crew: Awaited<ReturnType<typeof start>>) {
    const gate = Promise.withResolvers<void>();
    backend.script(async (seen) => {
      await gate.promise;
      return streamed(seen, 1);
    });
    const key = crew.key('many');
    const calls = Array.from({ length: 12 }, (_, i) =>
      crew.post(key, scanOf(i)).then(wholeOrCut, () => 'cut'),
    );
    await until(async () => backend.seen.length === calls.length);
    return { answers: Promise.all(calls), letGo: gate.resolve };
  }
  const wholeOrCut = (answer: Response) =>
    answer.text().then(
      (text) => (text.length > 1 << 20 ? 'whole' : 'short'),
      () => 'cut',
    );

  test('M20 its processes end with their calls', async () => {
    await using crew = await start();
    const pids = [...crew.processes().values()];
    const { answers, letGo } = await withScans(crew);
    crew.kill('SIGKILL');
    await crew.exited;
    await until(() =>
      crew.health().then(
        () => false,
        () => true,
      ),
    );
    letGo();
    expect(new Set(await answers)).toEqual(new Set(['whole']));
    await until(async () => pids.every(hasEnded));
  });

  test('M20 a restart waits for its processes, which end within five seconds, and serves', async () => {
    await using crew = await start({ listen: `127.0.0.1:${freePort()}` });
    const pids = [...crew.processes().values()];
    const { answers } = await withScans(crew);
    const ended = until(async () => pids.every(hasEnded)).then(() => performance.now());
    crew.kill('SIGKILL');
    const killedMs = performance.now();
    await using next = await startProcess(
      [join(ROOT, 'gateway/main.ts'), '--config', crew.config],
      crew.folder,
    );
    expect((await ended) - killedMs).toBeLessThan(5_000);
    expect(new Set(await answers)).toEqual(new Set(['cut']));
    for (let i = 0; i < 8; i++)
      expect((await fetch(new URL('/health', next.url), { keepalive: false })).status).toBe(200);
    next.kill('SIGTERM');
    expect(await next.exited).toBe(0);
  });

  test('M20 its processes end within five seconds when it dies in the middle of a drain', async () => {
    await using crew = await start();
    const pids = [...crew.processes().values()];
    const { answers } = await withScans(crew);
    crew.kill('SIGTERM');
    await until(async () => (await crew.health()) === '503 draining');
    crew.kill('SIGKILL');
    const killedMs = performance.now();
    await until(async () => pids.every(hasEnded));
    expect(performance.now() - killedMs).toBeLessThan(5_000);
    expect(new Set(await answers)).toEqual(new Set(['cut']));
  });

  test('M20 a restart beside a process that stays starts none and says which it is', async () => {
    using folder = temporaryFolder();
    const { args } = crewConfig(folder.path, { backendUrl: backend.url, processes: 2 });
    expect(takeLock(folder.path, 'gateway-2').kind).toBe('locked');
    const { code, stderr } = await runToEnd(args, folder.path);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`gateway-2 is already running on the data directory ${folder.path}`),
    ]);
    expect(existsSync(join(folder.path, 'gateway-1.node'))).toBe(false);
  });
});

test('M21 while one process drains alone /health says what it said before, whichever is asked', async () => {
  await using crew = await start();
  const key = crew.key('many');
  await until(async () => (await crew.health()) === '200 ok');
  const gate = Promise.withResolvers<void>();
  backend.script(async (seen) => {
    await gate.promise;
    return streamed(seen, 1);
  });
  const calls = Array.from({ length: 8 }, (_, i) => crew.post(key, scanOf(i)));
  await until(async () => backend.seen.length === calls.length);
  const draining = crew.pidOf(1);
  process.kill(draining, 'SIGTERM');
  const said = new Set<string>();
  // Its listener stays open while requests come, for five seconds at most.
  await until(async () => {
    // A connection that the closing listener had accepted is reset.
    for (const each of await Promise.allSettled([1, 2, 3, 4].map(crew.health)))
      if (each.status === 'fulfilled') said.add(each.value);
    return crew.processes().has(3) && (await crew.metric('sluice_gateway_processes')) === 2;
  });
  gate.resolve();
  for (const call of calls) expect((await (await call).text()).length).toBeGreaterThan(1 << 20);
  await until(async () => hasEnded(draining));
  expect([...said]).toEqual(['200 ok']);
});
