import { describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { takeLock } from '../../shared/store/lock.ts';
import { addressOf, startChain } from '../fakes/chain.ts';
import { addKey, opened, temporaryFolder } from '../started/gateway.ts';
import { childEnv, hasOpen, ROOT, runToEnd, startProcess } from '../started/process.ts';
import { until } from '../started/stack.ts';
import { AUTHORITY } from './started.ts';

const MAIN = join(ROOT, 'deploys/main.ts');
const AWAY = 'http://127.0.0.1:1';

/** A folder with a config; `rows` go into `[deploys]`. */
function folderWith(rows: string, rpcUrl = AWAY) {
  const folder = temporaryFolder();
  const config = join(folder.path, 'sluice.toml');
  const storage = `[storage]\ndata_dir = "${join(folder.path, 'data')}"\n`;
  const listeners = /^listen/m.test(rows) ? '' : 'listen = "127.0.0.1:0"\n';
  const text = `${storage}[deploys]\n${listeners}metrics = "127.0.0.1:0"\nrpc_urls = ["${rpcUrl}"]\n${rows}\n`;
  writeFileSync(config, text);
  return {
    ...folder,
    dataDir: join(folder.path, 'data'),
    args: [MAIN, '--config', config],
    add: (more: string) => writeFileSync(config, `${text}${more}`),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

describe('it refuses to start with one sentence and exit code 1', () => {
  test('when its port is taken', async () => {
    using other = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      reusePort: false,
      fetch: () => new Response(),
    });
    using folder = folderWith(`listen = "127.0.0.1:${other.port}"`);
    const { code, stdout, stderr } = await runToEnd(folder.args, folder.path);
    expect(stderr).toBe(
      `The address 127.0.0.1:${other.port} cannot be listened on (another process has it); free it or change deploys.listen in the config.\n`,
    );
    expect([code, stdout]).toEqual([1, '']);
  });

  test('when its database is corrupt', async () => {
    using folder = folderWith('');
    mkdirSync(folder.dataDir);
    writeFileSync(
      join(folder.dataDir, ACCOUNTS_FILE),
      'this is no database, whatever it is called'.repeat(100),
    );
    const { code, stderr } = await runToEnd(folder.args, folder.path);
    expect(stderr).toMatch(/^The database .*sluice\.db is corrupt \(.*\); put a backup in its place, .*\n$/);
    expect(code).toBe(1);
  });

  test('for each problem of its config', async () => {
    using folder = folderWith('poll_second = 60\npublic_url = "console"');
    const { code, stderr } = await runToEnd(folder.args, folder.path);
    const lines = stderr.trimEnd().split('\n');
    expect(lines).toHaveLength(2);
    expect(stderr).toContain('deploys.poll_second: unknown key (known keys: ');
    expect(stderr).toContain('deploys.public_url: found an invalid value (not shown)');
    expect(code).toBe(1);
  });

  test('for each problem of its list of programs', async () => {
    using folder = folderWith('programs = "programs.json"');
    const path = join(folder.path, 'programs.json');
    writeFileSync(path, JSON.stringify([{ program_id: 'abc', label: 'A' }, { program_id: addressOf('B') }]));
    const { code, stderr } = await runToEnd(folder.args, folder.path);
    expect(stderr.trimEnd().split('\n')).toEqual([
      'programs.json: [0].program_id: found "abc", expected a base58 address of 32 bytes',
      'programs.json: [1].label: found nothing, expected a name without leading or trailing spaces',
    ]);
    expect(code).toBe(1);
  });

  test.each([
    ['absent', undefined],
    ['no JSON', '[{'],
  ])('when its list of programs is %s', async (_, content) => {
    using folder = folderWith('programs = "list.json"');
    if (content !== undefined) writeFileSync(join(folder.path, 'list.json'), content);
    const { code, stderr } = await runToEnd(folder.args, folder.path);
    expect(stderr).toMatch(/^The list of programs list\.json cannot be read \(.+\)\.\n$/);
    expect(code).toBe(1);
  });

  test('when its config is not there, and when it is asked something it does not know', async () => {
    using folder = folderWith('');
    const absent = await runToEnd([MAIN, '--config', 'nowhere.toml'], folder.path);
    expect([absent.code, absent.stderr]).toEqual([
      1,
      'The config file nowhere.toml cannot be read (ENOENT).\n',
    ]);
    const unknown = await runToEnd([MAIN, '--prot', '1'], folder.path);
    expect([unknown.code, unknown.stderr.includes('--prot'), unknown.stderr.includes('Usage:')]).toEqual([
      1,
      true,
      true,
    ]);
  });

  test('when another one runs on the same database: two would send every delivery twice (E24)', async () => {
    using folder = folderWith('');
    await using _first = await startProcess(folder.args, folder.path);
    const { code, stderr } = await runToEnd(folder.args, folder.path);
    expect([code, stderr]).toEqual([
      1,
      `Another deploys is running on the data directory ${folder.dataDir}.\n`,
    ]);
  });
});

test('it changes no schema before it is alone: another release may run on the database', async () => {
  using folder = folderWith('');
  const locking = takeLock(folder.dataDir, 'deploys');
  const { code } = await runToEnd(folder.args, folder.path);
  expect([code, existsSync(join(folder.dataDir, ACCOUNTS_FILE))]).toEqual([1, false]);
  if (locking.kind === 'locked') locking.lock.release();
});

test('a SIGHUP that comes while it starts does not end it, and gateways are asked to read the config again', async () => {
  using folder = folderWith('');
  const accounts = opened(join(folder.dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  accounts.run('PRAGMA locking_mode = EXCLUSIVE');
  addKey(accounts, 'trial'); // takes the lock, and keeps it
  const child = Bun.spawn([process.execPath, ...folder.args], {
    cwd: folder.path,
    env: childEnv(),
    stdout: 'ignore',
    stderr: 'inherit',
  });
  await until(() => Promise.resolve(hasOpen(child.pid, ACCOUNTS_FILE)));
  folder.add('[plans.new]\nrps = 1\n');
  child.kill('SIGHUP');
  accounts.run('PRAGMA locking_mode = NORMAL');
  const revision = accounts.query<{ config: number }, []>('SELECT config FROM revision');
  const before = revision.get()?.config; // gives it up
  await until(async () => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
    return revision.get()?.config !== before;
  });
  child.kill('SIGTERM');
  expect(await child.exited).toBe(0);
  accounts.close();
});

describe('it stops when it is asked to, with exit code 0', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('by %s, also while the chain is away', async (signal) => {
    using folder = folderWith('');
    await using app = await startProcess(folder.args, folder.path);
    app.kill(signal);
    expect(await app.exited).toBe(0);
    expect(await app.stderr).toBe('');
  });

  test('by SIGTERM in the middle of a reading that hangs', async () => {
    await using chain = startChain();
    const asked = Promise.withResolvers<void>();
    chain.fault = () => (asked.resolve(), new Promise<Response>(() => {}));
    using folder = folderWith('', chain.url.href);
    await using app = await startProcess(folder.args, folder.path);
    await asked.promise;
    app.kill('SIGTERM');
    expect(await app.exited).toBe(0);
  });

  test('when its parent ends, by the end of its standard input', async () => {
    using folder = folderWith('');
    const child = Bun.spawn([process.execPath, ...folder.args], {
      cwd: folder.path,
      env: { PATH: process.env['PATH'] ?? '', SLUICE_SUPERVISED: '1' },
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    });
    for await (const chunk of child.stdout) {
      if (new TextDecoder().decode(chunk).includes('"ready":"deploys"')) break;
    }
    await child.stdin.end();
    expect(await child.exited).toBe(0);
  });
});

describe('P9 browsers are told to come by https alone', () => {
  const HSTS = 'max-age=31536000';
  const PUBLIC = { host: 'console.example.com' };
  const PAGES = ['/login', '/health', '/api/v1/program-deploys/programs', '/openapi', '/nothing'];

  async function told(rows: string, headers: Record<string, string>): Promise<(string | null)[]> {
    using folder = folderWith(rows);
    await using app = await startProcess(folder.args, folder.path);
    const answers = PAGES.map((path) => fetch(new URL(path, app.url), { headers, redirect: 'manual' }));
    return (await Promise.all(answers)).map((answer) => answer.headers.get('strict-transport-security'));
  }

  test.each<[string, string, Record<string, string>, string | null]>([
    ['https, says the proxy', 'https', { 'x-forwarded-proto': 'https' }, HSTS],
    ['https, says the last of two proxies', 'https', { 'x-forwarded-proto': 'http, https' }, HSTS],
    ['https, says the config', 'https', PUBLIC, HSTS],
    ['http, says the proxy', 'https', { ...PUBLIC, 'x-forwarded-proto': 'http' }, null],
    ['http, says the last of two proxies', 'https', { ...PUBLIC, 'x-forwarded-proto': 'https, http' }, null],
    ['http, past the proxy', 'https', {}, null],
    [
      'http, says the config, whatever the caller says',
      'http',
      { ...PUBLIC, 'x-forwarded-proto': 'https' },
      null,
    ],
  ])(
    'when they came by %s',
    async (_, scheme, headers, expected) => {
      const answers = await told(`public_url = "${scheme}://console.example.com"`, headers);
      expect(answers).toEqual(PAGES.map(() => expected));
    },
    20_000,
  );
});

describe('started by hand without an operator', () => {
  /** What it prints until it listens, to what is no terminal. */
  async function printed(args: readonly string[], cwd: string): Promise<string> {
    const child = Bun.spawn([process.execPath, ...args], {
      cwd,
      env: childEnv(),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    });
    let text = '';
    for await (const chunk of child.stdout) {
      text += new TextDecoder().decode(chunk);
      if (text.includes('"listening"')) break;
    }
    child.kill('SIGTERM');
    await child.exited;
    return text;
  }
  /** The same in a terminal. */
  async function shown(args: readonly string[], cwd: string): Promise<string> {
    let text = '';
    const listening = Promise.withResolvers<void>();
    const data = (_: Bun.Terminal, bytes: Uint8Array) => {
      text += new TextDecoder().decode(bytes);
      if (text.includes('"listening"')) listening.resolve();
    };
    const child = Bun.spawn([process.execPath, ...args], {
      cwd,
      env: childEnv(),
      terminal: { cols: 300, rows: 50, data },
    });
    await Promise.race([listening.promise, child.exited]);
    child.kill('SIGTERM');
    await child.exited;
    return text;
  }
  const linkIn = (text: string) =>
    /^http:\/\/.*\/first-operator\?token=[\w-]{43}\s*$/m.exec(text)?.[0].trim();

  test('P8 a terminal shows a link that makes the first one, another at every start, and none once there is one', async () => {
    using folder = folderWith('');
    const first = linkIn(await shown(folder.args, folder.path));
    const second = linkIn(await shown(folder.args, folder.path));
    expect(first).toStartWith('http://127.0.0.1:');
    expect([second === undefined, second === first]).toEqual([false, false]);
    expect(existsSync(join(folder.dataDir, 'first-operator-link'))).toBe(false);
    const store = opened(join(folder.dataDir, ACCOUNTS_FILE), {});
    store.run("INSERT INTO users (id, email, role, created_at_ms) VALUES ('1', 'a@b.c', 'operator', 0)");
    store.close();
    expect(linkIn(await shown(folder.args, folder.path))).toBeUndefined();
  }, 20_000);

  test('P8 what is no terminal gets the path of a file that its user alone can read, whatever was there', async () => {
    using folder = folderWith('');
    const file = join(folder.dataDir, 'first-operator-link');
    mkdirSync(folder.dataDir, { recursive: true });
    writeFileSync(file, 'anybody can read this', { mode: 0o666 });
    const text = await printed(folder.args, folder.path);
    expect([text.includes(file), text.includes('token=')]).toEqual([true, false]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(linkIn(readFileSync(file, 'utf8'))).toStartWith('http://127.0.0.1:');
  }, 20_000);

  test('it has no login under plain http, and says what to do', async () => {
    using folder = folderWith('public_url = "http://console.example.com"');
    const text = await printed(folder.args, folder.path);
    expect(text).toContain(
      'The console is off: browsers keep no login over plain http from console.example.com.',
    );
    expect(linkIn(text)).toBeUndefined();
    await using app = await startProcess(folder.args, folder.path);
    expect((await fetch(new URL('/login', app.url))).status).toBe(404);
  }, 20_000);
});

test('after kill -9 the next one starts at once, on the same database, with the block times it had', async () => {
  await using chain = startChain();
  const program = addressOf('A');
  chain.deploy(program, 5, AUTHORITY);
  chain.blockTimes.set(5, 1_700_000_000);
  using folder = folderWith('programs = "programs.json"', chain.url.href);
  writeFileSync(join(folder.path, 'programs.json'), JSON.stringify([{ program_id: program, label: 'A' }]));
  const store = opened(join(folder.dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const headers = { 'x-token': addKey(store, null) };
  store.close();
  const known = { programs: [{ program_id: program, deploy_slot: 5, deployed_at: '2023-11-14T22:13:20Z' }] };
  {
    await using first = await startProcess(folder.args, folder.path);
    expect(await knownAnswer(first.url, headers)).toMatchObject(known);
    first.kill('SIGKILL');
    await first.exited;
  }
  chain.blockTimes.clear();
  await using second = await startProcess(folder.args, folder.path);
  expect(await knownAnswer(second.url, headers)).toMatchObject(known);
});

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'after %s the next one goes on with the rate of each key, at both APIs (E40)',
  async (signal) => {
    using folder = folderWith('');
    const store = opened(join(folder.dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
    const [busy, fresh] = [addKey(store, null), addKey(store, null)];
    store.close();
    const paths = [PROGRAMS_PATH, '/api/v1/webhooks'];
    const statuses = (url: URL, key: string) =>
      Promise.all(
        paths.map(async (path) => (await fetch(new URL(path, url), { headers: { 'x-token': key } })).status),
      );
    {
      await using first = await startProcess(folder.args, folder.path);
      for (let i = 0; i < 60; i++) expect(await statuses(first.url, busy)).toEqual([503, 200]);
      first.kill(signal);
      await first.exited;
    }
    await using second = await startProcess(folder.args, folder.path);
    expect(await statuses(second.url, busy)).toEqual([429, 429]);
    expect(await statuses(second.url, fresh)).toEqual([503, 200]);
  },
  20_000,
);

/** Asks until the deploy time is known; the test's own timeout bounds it. Few enough questions for the key's minute. */
async function knownAnswer(url: URL, headers: Record<string, string>): Promise<object> {
  for (;;) {
    const response = await fetch(new URL(PROGRAMS_PATH, url), { headers });
    const text = await response.text();
    if (response.status === 200 && !text.includes('"deployed_at":null')) return JSON.parse(text);
    await Bun.sleep(150); // between two questions to another process
  }
}
