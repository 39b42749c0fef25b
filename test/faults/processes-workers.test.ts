import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { spentOf } from '../../shared/ledger/schema.ts';
import { result, startBackend } from '../fakes/backend.ts';
import { addKey, JSON_HEADERS, opened, temporaryFolder } from '../started/gateway.ts';
import { freePort } from '../started/ports.ts';
import { startProcess } from '../started/process.ts';
import { until } from '../started/stack.ts';
import { CALL, crewConfig, type CrewOptions, startCrew } from '../started/crew.ts';

const PLANS = '[plans.paid]\nrps = 100000\n[plans.tiny]\nrps = 1000\nmax_batch = 1\n';
const BATCH = `[${CALL},${CALL}]`;

setDefaultTimeout(30_000);

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

const start = (options: Partial<CrewOptions> = {}) =>
  startCrew({ backendUrl: backend.url, processes: 2, extra: PLANS, ...options });

type Crew = Awaited<ReturnType<typeof start>>;

const allListen = (crew: Crew) =>
  until(async () => (await crew.metric('sluice_gateway_processes')) === crew.processes().size);

/** kill -9 of every process, each when the others listen again. */
async function replaceAll(crew: Crew): Promise<void> {
  for (const [slot, pid] of crew.processes()) {
    process.kill(pid, 'SIGKILL');
    await until(async () => [crew.processes().get(slot)].some((now) => now !== undefined && now !== pid));
    await until(async () => (await crew.metric('sluice_gateway_processes')) === 2);
  }
}

/** The statuses of many requests, each on a connection of its own. */
async function statuses(crew: Crew, key: string, body?: string): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: 24 }, () => crew.post(key, body)));
  return [...new Set(answers.map(({ status }) => status))];
}

/** Writes a config in which the plan `tiny` allows batches. */
function allowBatches({ config }: Crew): void {
  writeFileSync(config, readFileSync(config, 'utf8').replace('max_batch = 1', 'max_batch = 2'));
}
const untilBatches = (crew: Crew, key: string) =>
  until(async () => (await statuses(crew, key, BATCH)).join() === '200');
const logged = (crew: Crew, text: string) => crew.printed().split(text).length - 1;

describe('the config', () => {
  test('M10 new plans are in every process after a reload, not before, also in one that starts later, and a broken file changes nothing', async () => {
    await using crew = await start();
    const key = crew.key('tiny');
    const text = readFileSync(crew.config, 'utf8');
    // Another backend needs a restart: a process that starts later must not have it either.
    const changed = text
      .replace('max_batch = 1', 'max_batch = 2')
      .replace(backend.url, 'http://127.0.0.1:1/');
    writeFileSync(crew.config, changed);
    await replaceAll(crew);
    expect(await statuses(crew, key, BATCH)).toEqual([400]);
    crew.kill('SIGHUP');
    await untilBatches(crew, key);
    writeFileSync(crew.config, `${text}colour = 1\n`);
    crew.kill('SIGHUP');
    await until(async () => logged(crew, 'the config was not reloaded') > 0);
    await replaceAll(crew);
    expect([await statuses(crew, key, BATCH), await statuses(crew, key)]).toEqual([[200], [200]]);
    expect(logged(crew, 'the config was not reloaded')).toBe(1);
  });

  test('M10 a reload that the database requests reads the config once for all processes', async () => {
    await using crew = await start();
    const key = crew.key('tiny');
    allowBatches(crew);
    crew.accounts.run('UPDATE revision SET config = config + 1');
    await untilBatches(crew, key);
    expect(logged(crew, 'plans and credits reloaded')).toBe(1);
  });

  test.each([1, 2])(
    'M10 a reload by %d processes refuses a file that is empty, lost, or without a plan that accounts are on, and says why',
    async (processes) => {
      await using crew = await start({ processes, extra: `${PLANS}[plans.unused]\nrps = 1\n` });
      const key = crew.key('tiny');
      const { config: path } = crew;
      const text = readFileSync(path, 'utf8');
      const reasons: readonly (readonly [string | undefined, string])[] = [
        ['', 'is empty.'],
        [undefined, 'cannot be read (it does not exist)'],
        [
          text.slice(0, text.indexOf('[plans.tiny]')),
          'Plan tiny is gone from the config, but accounts still use it: 1.',
        ],
      ];
      for (const [i, [other, reason]] of reasons.entries()) {
        if (other === undefined) rmSync(path);
        else writeFileSync(path, other);
        crew.kill('SIGHUP');
        await until(async () => logged(crew, 'the config was not reloaded') === i + 1);
        const lines = crew.printed().split('\n');
        expect(lines.findLast((line) => line.includes('not reloaded'))).toContain(reason);
        expect([await statuses(crew, key, BATCH), await statuses(crew, key)]).toEqual([[400], [200]]);
      }
      const wanted = text.replace('max_batch = 1', 'max_batch = 2').replace('[plans.unused]\nrps = 1\n', '');
      writeFileSync(path, wanted);
      crew.kill('SIGHUP');
      await untilBatches(crew, key);
      expect(logged(crew, 'the config was not reloaded')).toBe(reasons.length);
    },
  );

  test.each([1, 2])(
    'M10 a reload that is requested while %d processes start happens when they listen',
    async (processes) => {
      using folder = temporaryFolder();
      const { args, path } = crewConfig(folder.path, { backendUrl: backend.url, processes, extra: PLANS });
      const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
      const key = addKey(accounts, 'tiny');
      const text = readFileSync(path, 'utf8');
      // The first process asks its backends before it listens.
      let isAsked = false;
      backend.probed(() => {
        if (isAsked) return undefined;
        isAsked = true;
        writeFileSync(path, text.replace('max_batch = 1', 'max_batch = 2'));
        accounts.run('UPDATE revision SET config = config + 1');
        return undefined;
      });
      await using gateway = await startProcess(args, folder.path);
      const headers = { ...JSON_HEADERS, 'x-token': key };
      await until(
        async () => (await fetch(gateway.url, { method: 'POST', body: BATCH, headers, keepalive: false })).ok,
      );
      accounts.close();
    },
  );

  test('M10 a SIGHUP to one of several processes is not for it: their supervisor reads the config', async () => {
    await using crew = await start();
    const key = crew.key('tiny');
    const pids = [...crew.processes().values()];
    allowBatches(crew);
    for (const pid of pids) process.kill(pid, 'SIGHUP');
    expect(await statuses(crew, key, BATCH)).toEqual([400]);
    crew.kill('SIGHUP');
    await untilBatches(crew, key);
    expect([logged(crew, 'plans and credits reloaded'), ...crew.processes().values()]).toEqual([1, ...pids]);
  });

  test('M10 its secrets are neither in the arguments nor in the environment of a process', async () => {
    await using crew = await start({
      extra: `${PLANS}[[backends]]\nname = "b"\nurl = "${backend.url}?s3cret"\n`,
    });
    for (const pid of crew.processes().values())
      for (const file of ['cmdline', 'environ'])
        expect(readFileSync(`/proc/${pid}/${file}`, 'utf8')).not.toContain('s3cret');
  });
});

test('M11 while processes start the port refuses, and gives no answer that is empty', async () => {
  using folder = temporaryFolder();
  const listen = `127.0.0.1:${freePort()}`;
  const { args } = crewConfig(folder.path, { backendUrl: backend.url, processes: 2, listen });
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  addKey(accounts, 'scale');
  accounts.close();
  const outcomes = new Set<string>();
  const look = () =>
    fetch(`http://${listen}/health`, { keepalive: false }).then(
      async (response) => `${response.status} ${await response.text()}`,
      (error: Error & { code?: string }) => String(error.code),
    );
  let isOver = false;
  const looking = (async () => {
    while (!isOver) {
      outcomes.add(await look());
      await Bun.sleep(1); // the start needs the machine too
    }
  })();
  await using _gateway = await startProcess(args, folder.path);
  isOver = true;
  await looking;
  expect(outcomes).toContain('ECONNREFUSED');
  expect(outcomes).toContain('200 ok\n');
  // The port is bound for an instant, to see whether it is free: what connects just then is reset.
  const others = [...outcomes].filter((each) => !['200 ok\n', 'ECONNREFUSED', 'ECONNRESET'].includes(each));
  expect(others).toEqual([]);
});

test('M12 a process that hangs is killed after five seconds, counted and replaced, while the others serve', async () => {
  await using crew = await start();
  const key = crew.key('paid');
  const [hanging, well] = [crew.pidOf(2), crew.pidOf(1)];
  process.kill(hanging, 'SIGSTOP');
  await until(async () => !existsSync(`/proc/${hanging}`));
  await until(async () => (await crew.metric('sluice_gateway_processes')) === 2);
  expect(await crew.metric('sluice_gateway_process_hangs_total')).toBe(1);
  expect(crew.pidOf(1)).toBe(well);
  expect(crew.printed()).toContain('a process hangs and is killed');
  expect(await statuses(crew, key)).toEqual([200]);
});

test('M12 processes that stood still together with their supervisor, as on a machine that sleeps, go on', async () => {
  await using crew = await start();
  const pids = [...crew.processes().values()];
  for (const pid of [crew.pid, ...pids]) process.kill(pid, 'SIGSTOP');
  await Bun.sleep(7_000); // longer than a process may be silent
  for (const pid of [crew.pid, ...pids]) process.kill(pid, 'SIGCONT');
  await until(async () => (await crew.metric('sluice_gateway_processes')) === 2);
  // A process would be killed at the supervisor's next look.
  await Bun.sleep(2_000);
  expect(await crew.metric('sluice_gateway_process_hangs_total')).toBe(0);
  expect([...crew.processes().values()]).toEqual(pids);
});

/** Calls that are held at the backend until they are released; several for each process. */
async function held(crew: Crew, key: string) {
  const gate = Promise.withResolvers<void>();
  backend.script(async (seen) => {
    await gate.promise;
    return result(seen, '1');
  });
  // Sends are not shared.
  const body = '{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["AA=="]}';
  const calls = Array.from({ length: 24 }, () =>
    crew.post(key, body).then(
      ({ status }) => status,
      () => 'cut',
    ),
  );
  await until(async () => backend.seen.length === calls.length);
  return { calls: Promise.all(calls), letGo: gate.resolve };
}

test('M13 the seat of a process that drains alone is taken at once, while its answers in flight end', async () => {
  await using crew = await start();
  const { calls, letGo } = await held(crew, crew.key('paid'));
  const draining = crew.pidOf(1);
  process.kill(draining, 'SIGTERM');
  await until(async () => crew.processes().has(3) && (await crew.metric('sluice_gateway_processes')) === 2);
  expect([...crew.processes().keys()].toSorted()).toEqual([1, 2, 3]);
  // Its counts of that time are in the sums.
  expect(await crew.metric('sluice_gateway_backend_calls_in_flight{backend="a"}')).toBe(24);
  letGo();
  expect(new Set(await calls)).toEqual(new Set([200]));
  await until(async () => !existsSync(`/proc/${draining}`));
  await allListen(crew);
  expect([...crew.processes().keys()].toSorted()).toEqual([2, 3]);
  expect(await statuses(crew, crew.key('paid'))).toEqual([200]);
});

test('M13 a trial spends its credits once, whatever numbers its processes have had', async () => {
  const CREDITS = 300;
  await using crew = await start({ extra: '[plans.prepaid]\nrps = 100000\ncredits = 1\n' });
  const key = crew.key('prepaid', CREDITS);
  const counts = new Map<number | 'lost', number>();
  const ledger = opened(join(crew.folder, LEDGER_FILE), LEDGER_MIGRATIONS);
  const numbers = new Set<number>();
  for (let answers = 0; !counts.has(402);) {
    for (const number of crew.processes().keys()) numbers.add(number);
    const spent = spentOf(ledger, 1);
    const status = await crew.post(key).then(
      (answer) => answer.status,
      () => 'lost' as const, // it came when a listener closed
    );
    counts.set(status, (counts.get(status) ?? 0) + 1);
    // 429 only while another process still holds the last ones.
    if (status === 429) expect(spent).toBeLessThan(CREDITS);
    const [first] = crew.processes().values();
    // Nobody listens: who starts is let go on, or the pool gives up.
    if (status === 'lost') continue;
    if (++answers % 50 === 0 && first !== undefined) process.kill(first, 'SIGTERM');
  }
  // 503: on a busy machine the ledger answers later than a call waits.
  expect([...counts.keys()].filter((status) => ![200, 402, 429, 503, 'lost'].includes(status))).toEqual([]);
  expect(spentOf(ledger, 1)).toBe(CREDITS);
  ledger.close();
  await allListen(crew);
  expect(await statuses(crew, key)).toEqual([402]);
  expect(Math.max(...numbers)).toBeGreaterThan(2);
  const answered = counts.get(200) ?? 0;
  expect(answered).toBeWithin(CREDITS - (counts.get('lost') ?? 0), CREDITS + 1);
}, 60_000);

test.each([1, 2])(
  'M14 a drain of %d processes ends by gateway.drain_seconds, and cuts what is left',
  async (processes) => {
    await using crew = await start({ processes, gatewayLines: 'drain_seconds = 1\n' });
    const { calls } = await held(crew, crew.key('paid'));
    crew.kill('SIGTERM');
    expect(new Set(await calls)).toEqual(new Set(['cut']));
    expect(await crew.exited).toBe(0);
  },
);
