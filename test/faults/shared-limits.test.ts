import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { LEDGER_FILE, LEDGER_MIGRATIONS, spentOf } from '../../gateway/limits/ledger.ts';
import { join } from 'node:path';
import { startBackend } from '../fakes/backend.ts';
import { opened } from '../started/gateway.ts';
import { startProcess } from '../started/process.ts';
import { startRedis } from '../started/redis.ts';
import { CALL, type CrewOptions, crewConfig, startCrew } from './gateway-crew.ts';

const PLANS =
  '[plans.prepaid]\nrps = 100000\nburst = 100000\ncredits = 100000\n[plans.steady]\nrps = 100\nburst = 100\n';

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

const start = (options: Partial<CrewOptions> = {}) =>
  startCrew({ backendUrl: backend.url, processes: 3, extra: PLANS, ...options });
type Crew = Awaited<ReturnType<typeof start>>;

/** Asks on connections of its own until a 402; what was answered with which status. */
async function spendAll(crew: Crew, key: string): Promise<Map<number, number>> {
  const seen = new Map<number, number>();
  let over = false;
  const caller = async () => {
    while (!over) {
      const { status } = await crew.post(key);
      seen.set(status, (seen.get(status) ?? 0) + 1);
      if (status === 402) over = true;
      // The last credits may lie with another process, which gives them back within a second.
      if (status === 429 || status === 503) await Bun.sleep(100);
    }
  };
  await Promise.all(Array.from({ length: 8 }, caller));
  return seen;
}

describe.each(['the ledger of their host', 'a Redis'])('gateway processes that share by %s', (centre) => {
  const withCentre = async () => {
    const redis = centre === 'a Redis' ? await startRedis() : undefined;
    const storageLines = redis === undefined ? '' : `redis = "${redis.url}"\n`;
    return { redis, storageLines };
  };

  test('spend a trial to its last credit, none twice, and say 402 not before', async () => {
    const { redis, storageLines } = await withCentre();
    await using crew = await start({ storageLines });
    const CREDITS = 400;
    const key = crew.key('prepaid', CREDITS);
    const seen = await spendAll(crew, key);
    expect(seen.get(200)).toBe(CREDITS);
    expect(backend.seen.length).toBe(CREDITS);
    expect(crew.charged().size).toBeGreaterThan(1);
    await redis?.[Symbol.asyncDispose]();
  }, 20_000);

  test('admit together what the plan allows one', async () => {
    const { redis, storageLines } = await withCentre();
    await using crew = await start({ storageLines });
    const key = crew.key('steady');
    const SECONDS = 4;
    const endMs = performance.now() + SECONDS * 1_000;
    let admitted = 0;
    const caller = async () => {
      while (performance.now() < endMs) if ((await crew.post(key)).status === 200) admitted++;
    };
    await Promise.all(Array.from({ length: 12 }, caller));
    // One burst, the rate, and a debt of 2 calls a process; a little more time passes than is measured.
    expect(admitted).toBeLessThanOrEqual(100 + 100 * (SECONDS + 0.5) + 3 * 2);
    expect(admitted).toBeGreaterThanOrEqual(100 * SECONDS * 0.9);
    await redis?.[Symbol.asyncDispose]();
  }, 20_000);
});

test('kill -9 of processes under load loses no charge and spends no credit twice', async () => {
  await using crew = await start();
  const CREDITS = 3_000;
  const key = crew.key('prepaid', CREDITS);
  let answered = 0;
  let over = false;
  const caller = async () => {
    while (!over) {
      const status = await crew.post(key).then(
        (answer) => answer.status,
        () => 0,
      );
      if (status === 200) answered++;
      if (status === 402) over = true;
      if (status === 429 || status === 503) await Bun.sleep(50);
    }
  };
  const load = Promise.all(Array.from({ length: 8 }, caller));
  for (let kill = 0; kill < 4; kill++) {
    await Bun.sleep(250); // load between two kills
    const [pid] = [...crew.processes().values()];
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  }
  await load;
  const ledger = opened(join(crew.folder, LEDGER_FILE), LEDGER_MIGRATIONS);
  const spent = spentOf(ledger, 1);
  ledger.close();
  expect(spent).toBe(CREDITS);
  expect(answered).toBeLessThanOrEqual(spent);
  expect(backend.seen.length).toBeLessThanOrEqual(spent);
  // Each kill can take what was in flight with it, paid and not answered.
  expect(spent - answered).toBeLessThanOrEqual(4 * 8);
}, 30_000);

test('what several processes spent is spent for one that is alone, and the other way round', async () => {
  await using crew = await start();
  const key = crew.key('prepaid', 100);
  for (let i = 0; i < 40; i++) expect((await crew.post(key)).status).toBe(200);
  crew.kill('SIGTERM');
  await crew.exited;

  const leftAfter = async (processes: number, calls: number) => {
    const { args } = crewConfig(crew.folder, { backendUrl: backend.url, processes, extra: PLANS });
    await using gateway = await startProcess(args, crew.folder);
    let left = '';
    for (let answered = 0; answered < calls;) {
      const answer = await fetch(gateway.url, {
        method: 'POST',
        body: CALL,
        headers: { 'content-type': 'application/json', 'x-token': key },
      });
      expect([200, 429]).toContain(answer.status);
      // The last credits may lie with another process, which gives them back within a second.
      if (answer.status === 429) await Bun.sleep(100);
      else answered++;
      left = answer.headers.get('x-credits-left') ?? left;
    }
    gateway.kill('SIGTERM');
    await gateway.exited;
    return left;
  };
  expect(await leftAfter(1, 10)).toBe('50');
  const calls = 50;
  await leftAfter(2, calls);
  const ledger = opened(join(crew.folder, LEDGER_FILE), LEDGER_MIGRATIONS);
  expect(spentOf(ledger, 1)).toBe(100);
  ledger.close();
}, 30_000);
