import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_FILE } from '../../gateway/ledger.ts';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { result, startBackend } from '../fakes/backend.ts';
import { openCaller, postText, type RawCaller } from '../fakes/raw-caller.ts';
import { createVirtualClock } from '../fakes/chain-clock.ts';
import { startGateway } from '../started/gateway.ts';
import { startRedis } from '../started/redis.ts';
import { until } from '../started/stack.ts';
import { startCrew, startAlone } from '../started/crew.ts';

setDefaultTimeout(40_000);

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

type Alone = Awaited<ReturnType<typeof startAlone>>;
type Printing = Readonly<{ printed(): string }>;

const says = (gateway: Alone, health: string) => until(async () => (await gateway.health()) === health);

/** Has every insert into a table of the ledger fail until the returned function is called. */
const breakTable = (gateway: Readonly<{ folder: string }>, table: string) =>
  change(gateway, LEDGER_FILE, [
    `CREATE TRIGGER broken BEFORE INSERT ON ${table} BEGIN SELECT RAISE(FAIL, 'disk full'); END`,
    'DROP TRIGGER broken',
  ]);

const hideTable = (gateway: Readonly<{ folder: string }>, file: string, table: string) =>
  change(gateway, file, [`ALTER TABLE ${table} RENAME TO hidden`, `ALTER TABLE hidden RENAME TO ${table}`]);

/** Changes a database; gives what takes it back. */
function change({ folder }: Readonly<{ folder: string }>, file: string, [there, back]: [string, string]) {
  const database = new Database(join(folder, file));
  database.run('PRAGMA busy_timeout = 5000');
  database.run(there);
  return () => {
    database.run(back);
    database.close();
  };
}

const lineOf = (gateway: Printing, msg: string) =>
  gateway
    .printed()
    .split('\n')
    .filter((line) => line.includes(`"msg":"${msg}"`))
    .map((line) => JSON.parse(line));

describe('M15 what is wrong with a store is in /health and in the log, with its cause', () => {
  test.each<[string, string, (gateway: Alone) => () => void, number, string, string, string]>([
    [
      'charges that are not written make it not ready',
      LEDGER_FILE,
      (gateway) => breakTable(gateway, 'spent'),
      503,
      '503',
      'charges cannot be written to ledger.db, so trials are refused with 503',
      'disk full',
    ],
    [
      'usage that is not written is a remark, for callers are served',
      LEDGER_FILE,
      (gateway) => breakTable(gateway, 'usage_hours'),
      200,
      '200 ok, but',
      'usage cannot be written to ledger.db',
      'disk full',
    ],
    [
      'accounts that cannot be read make it not ready, for revocations are not seen',
      ACCOUNTS_FILE,
      (gateway) => hideTable(gateway, ACCOUNTS_FILE, 'revision'),
      200,
      '503',
      'sluice.db cannot be read',
      'no such table: revision',
    ],
    [
      'credits spent that cannot be read make it not ready, for trials are refused',
      LEDGER_FILE,
      (gateway) => hideTable(gateway, LEDGER_FILE, 'spent'),
      503,
      '503',
      'ledger.db cannot be read, so trials are refused with 503',
      'no such table: spent',
    ],
  ])('M15 %s', async (_name, file, spoil, status, health, what, cause) => {
    await using gateway = await startAlone(backend.url);
    const key = gateway.key(status === 503 ? 'trial' : 'scale', 100);
    await says(gateway, '200 ok');
    const mend = spoil(gateway);
    expect(await gateway.statusOf(key)).toBe(status);
    await says(gateway, `${health} ${what} (${cause})`);
    const line = await until(async () => lineOf(gateway, what)[0]);
    expect(line).toMatchObject({ level: 50, store: join(gateway.folder, file), cause });
    mend();
    await says(gateway, '200 ok');
    expect(await gateway.statusOf(key)).toBe(200);
    await until(async () => lineOf(gateway, `no longer: ${what}`).length === 1);
  });

  test('M15 a Redis that is away or takes no writes is a remark, for limits go on by shares', async () => {
    await using redis = await startRedis();
    await using gateway = await startAlone(backend.url, { storageLines: `redis = "${redis.url}"\n` });
    const key = gateway.key();
    await until(async () => (await gateway.statusOf(key)) === 200);
    await redis.cli('CONFIG', 'SET', 'maxmemory', '1');
    const remark = (cause: string) =>
      until(async () => {
        if ((await gateway.statusOf(key)) !== 200) return undefined;
        const said = await gateway.health();
        return said.startsWith(`200 ok, but the store of shared limits does not answer (${cause}`);
      });
    const full = 'Redis is full: OOM command not allowed when used memory > ';
    await remark(full);
    const line = await until(async () => lineOf(gateway, 'the store of shared limits does not answer')[0]);
    expect(line).toMatchObject({ level: 50, store: 'Redis', cause: expect.stringContaining(full) });
    await redis.cli('CONFIG', 'SET', 'maxmemory', '0');
    await until(async () => (await gateway.statusOf(key)) === 200 && (await gateway.health()) === '200 ok');
    await redis.die();
    await remark('Redis is away: ');
  });

  test('M15 so is a ledger by which processes of one host cannot share limits', async () => {
    await using crew = await startCrew({ backendUrl: backend.url, processes: 2 });
    const key = crew.key('scale');
    const healths = async () => {
      const calls = Array.from({ length: 16 }, () => crew.post(key).then((answer) => answer.text()));
      await Promise.all(calls);
      const ask = () =>
        fetch(new URL('/health', crew.url), { keepalive: false }).then((answer) => answer.text());
      return new Set(await Promise.all(Array.from({ length: 16 }, ask)));
    };
    await until(async () => [...(await healths())].join() === 'ok\n');
    const mend = breakTable(crew, 'leases');
    const store = join(crew.folder, LEDGER_FILE);
    const what = 'the store of shared limits does not answer';
    const cause = 'ledger.db is away: disk full';
    await until(async () => [...(await healths())].join() === `ok, but ${what} (${cause})\n`);
    const lines = lineOf(crew, what);
    expect(lines).toHaveLength(1); // of the host, whichever of its processes saw it
    expect(lines[0]).toMatchObject({ store, cause });
    mend();
    await until(async () => [...(await healths())].join() === 'ok\n');
  });
});

describe('M16 a gateway that cannot know its callers is not ready', () => {
  test('M16 one that has never seen an account says so until there is one', async () => {
    await using gateway = await startAlone(backend.url);
    const cause = 'create one with "bun run sluice account create NAME", or correct storage.data_dir';
    expect(await gateway.health()).toBe(`503 sluice.db has no account yet (${cause})`);
    gateway.key();
    await says(gateway, '200 ok');
  });

  test('M16 it says no longer that there is none a quarter of a second after one was created', async () => {
    const clock = createVirtualClock();
    await using gateway = await startGateway({ backends: [{ name: 'a', url: backend.url }] }, clock);
    const health = async () => (await fetch(new URL('/health', gateway.url))).text();
    gateway.maintain();
    expect(await health()).toContain('has no account yet');
    gateway.key();
    await clock.advance(250);
    expect(await health()).not.toContain('account');
  });

  test.each([ACCOUNTS_FILE, LEDGER_FILE])('M16 one whose %s is deleted or replaced says so', async (file) => {
    await using gateway = await startAlone(backend.url);
    gateway.key();
    await says(gateway, '200 ok');
    const [path, aside] = [join(gateway.folder, file), join(gateway.folder, 'aside')];
    const cause = 'restart every app when the right file is in its place';
    renameSync(path, aside);
    await says(gateway, `503 ${file} was deleted under this process (${cause})`);
    await until(async () => lineOf(gateway, `${file} was deleted under this process`).length === 1);
    copyFileSync(aside, path);
    await says(gateway, `503 ${file} was replaced under this process (${cause})`);
    renameSync(aside, path);
    await says(gateway, '200 ok');
  });
});

describe('M17 a process that is out of descriptors', () => {
  const LIMIT = 128;
  const LIMITS = `ulimit -n ${LIMIT}`;

  /** The answer number `times` of a connection that is kept, whole. */
  async function get(caller: RawCaller, path: string, times: number): Promise<string> {
    caller.send(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    const end = path === '/metrics' ? 'log_lines_dropped_total 0\n' : '\r\n\r\n';
    const all = await caller.until(end, times);
    return all.slice(all.lastIndexOf('HTTP/1.1 '));
  }

  test('M17 goes on showing its metrics, blames no backend, and is well again by itself', async () => {
    const gate = Promise.withResolvers<void>();
    const closing = (response: Response) => {
      response.headers.set('connection', 'close');
      return response;
    };
    backend.probed((seen) => closing(result(seen, '1')));
    backend.script(async (seen) => {
      await gate.promise;
      return closing(result(seen, '1'));
    });
    // The calls wait for one of two connections: nothing but callers takes descriptors, and probes need one.
    const extra = 'max_connections = 2\n[deadlines]\nlight = 60\n';
    await using gateway = await startAlone(
      backend.url,
      { extra, gatewayLines: 'probe_seconds = 1\n' },
      LIMITS,
    );
    const key = gateway.key();
    using scrape = await openCaller(gateway.metricsUrl);
    await get(scrape, '/metrics', 1);
    using callers = new DisposableStack();
    for (let i = 0; i < LIMIT; i++) {
      const caller = callers.use(await openCaller(gateway.url));
      const body = `{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["${i}"]}`;
      caller.send(postText(body, key));
    }
    await until(async () => gateway.printed().includes('no file descriptor is left'));
    await Bun.sleep(4_000); // several rounds of probes
    const metrics = await get(scrape, '/metrics', 2);
    expect(metrics).toContain('sluice_gateway_backend_in{backend="a"} 1\n');
    expect(metrics).toMatch(/^process_resident_memory_bytes [1-9]/m);
    expect(metrics).not.toContain('backend_failures_total{');
    expect(gateway.printed()).not.toContain('a backend');
    gate.resolve();
    callers.dispose();
    await until(async () => gateway.printed().includes('no longer: no file descriptor is left'));
    await says(gateway, '200 ok');
    expect(await gateway.statusOf(key)).toBe(200);
  });

  test('M17 says before that they are short, while heads that are not finished hold theirs', async () => {
    await using gateway = await startAlone(backend.url, {}, LIMITS);
    gateway.key();
    await says(gateway, '200 ok');
    using callers = new DisposableStack();
    const isShort = /^200 ok, but file descriptors are short \(about \d+ of 128 are in use\)$/;
    const open = async () =>
      callers.use(await openCaller(gateway.url)).send('POST / HTTP/1.1\r\nhost: a\r\n');
    // Slowly at the end: it looks once a second.
    for (let opened = 0; !isShort.test(await gateway.health()); opened++) {
      expect(opened).toBeLessThan(LIMIT);
      await open();
      if (opened > LIMIT / 2) await Bun.sleep(150);
    }
    await until(async () => lineOf(gateway, 'file descriptors are short').length === 1);
    // The listener closes them by itself in twelve seconds.
    callers.dispose();
    await says(gateway, '200 ok');
  });

  test.each([
    ['half a body', 'content-length: 9\r\n\r\nhalf'],
    ['a refused body that does not come', 'content-length: 900000\r\n\r\n'],
    ['a body in chunks that does not end', 'transfer-encoding: chunked\r\n\r\n1\r\na\r\n'],
  ])(
    'M17 closes connections without a valid key that keep %s, so that calls are answered',
    async (_name, rest) => {
      backend.probed((seen) => result(seen, '1'));
      backend.script((seen) => result(seen, '1'));
      await using gateway = await startAlone(backend.url, {}, LIMITS);
      const key = gateway.key();
      using callers = new DisposableStack();
      const head = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';
      for (let i = 0; i < 2 * LIMIT; i++) callers.use(await openCaller(gateway.url)).send(`${head}${rest}`);
      expect(await gateway.statusOf(key)).toBe(200);
    },
  );

  test('M17 closes idle connections, so that new ones are answered', async () => {
    await using gateway = await startAlone(backend.url, {}, LIMITS);
    gateway.key();
    using callers = new DisposableStack();
    for (let i = 0; i < 2 * LIMIT; i++) {
      const caller = callers.use(await openCaller(gateway.url));
      expect(await get(caller, '/health', 1)).toMatch(/^HTTP\/1.1 (?:200|503) /);
    }
    expect((await fetch(gateway.metricsUrl)).status).toBe(200);
  });
});
