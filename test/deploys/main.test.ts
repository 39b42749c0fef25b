import { describe, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { WEBHOOKS_PATH } from '../../deploys/api/webhook-routes.ts';
import { argon2id } from '../../deploys/auth/passwords.ts';
import { DEPLOYS_MIGRATIONS } from '../../deploys/schema.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { takeLock } from '../../shared/store/lock.ts';
import { addKey, opened, temporaryFolder } from '../started/gateway.ts';
import { childEnv, hasOpen, ROOT, runToEnd, startProcess } from '../started/process.ts';
import { until } from '../started/stack.ts';
import { createVisitor, logIn, PASSWORD } from './auth/people.ts';

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
  /** What is wrong with the folder before the start, and what it says. */
  test.each<[string, string, (folder: ReturnType<typeof folderWith>) => void, RegExp]>([
    [
      'its database is corrupt',
      '',
      ({ dataDir }) => {
        mkdirSync(dataDir);
        writeFileSync(join(dataDir, ACCOUNTS_FILE), 'this is no database, whatever it is called'.repeat(100));
      },
      /^The database .*sluice\.db is corrupt \(.*\); put a backup in its place, .*\n$/,
    ],
    [
      'its config has problems, one line each',
      'poll_second = 60\npublic_url = "console"',
      () => undefined,
      /^(?=[^]*deploys\.poll_second: unknown key \(known keys: )(?=[^]*deploys\.public_url: found an invalid value \(not shown\))(.+\n){2}$/,
    ],
    [
      'its list of programs is no JSON',
      'programs = "list.json"',
      ({ path }) => writeFileSync(join(path, 'list.json'), '[{'),
      /^The list of programs list\.json is not valid JSON: .+\n$/,
    ],
  ])('when %s', async (_, rows, spoil, sentence) => {
    using folder = folderWith(rows);
    spoil(folder);
    const { code, stderr } = await runToEnd(folder.args, folder.path);
    expect([code, stderr]).toEqual([1, expect.stringMatching(sentence)]);
  });

  test('when its config is not there, and when it is asked something it does not know', async () => {
    using folder = folderWith('');
    const [absent, unknown] = await Promise.all([
      runToEnd([MAIN, '--config', 'nowhere.toml'], folder.path),
      runToEnd([MAIN, '--prot', '1'], folder.path),
    ]);
    expect([absent.code, absent.stderr]).toEqual([
      1,
      'The config file nowhere.toml cannot be read (it does not exist).\n',
    ]);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringMatching(/--prot[^]*Usage:/)]);
  });

  test('when another one runs on the same database: two would send every delivery twice (E24)', async () => {
    using folder = folderWith('');
    await using _first = await startProcess(folder.args, folder.path);
    const { code, stderr } = await runToEnd(folder.args, folder.path);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`deploys is already running on the data directory ${folder.dataDir}`),
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

test.each(['SIGTERM', 'SIGINT'] as const)(
  'it stops when it is asked to by %s, with exit code 0, also while the chain is away',
  async (signal) => {
    using folder = folderWith('');
    await using app = await startProcess(folder.args, folder.path);
    app.kill(signal);
    expect(await app.exited).toBe(0);
    expect(await app.stderr).toBe('');
  },
);

const HSTS = 'max-age=31536000';
const PUBLIC_HOST = { host: 'console.example.com' };
const PAGES = ['/login', '/health', '/api/v1/program-deploys/programs', '/openapi', '/nothing'];

/** Headers of a caller, how they say that they came, and what they are told. */
type Case = [string, Record<string, string>, string | null];
const past: Case[] = [
  ['https, says the proxy', { 'x-forwarded-proto': 'https' }, HSTS],
  ['https, says the last of two proxies', { 'x-forwarded-proto': 'http, https' }, HSTS],
  ['https, says the config', PUBLIC_HOST, HSTS],
  ['http, says the proxy', { ...PUBLIC_HOST, 'x-forwarded-proto': 'http' }, null],
  ['http, says the last of two proxies', { ...PUBLIC_HOST, 'x-forwarded-proto': 'https, http' }, null],
  ['http, past the proxy', {}, null],
];
test.each<[string, Case[]]>([
  ['https', past],
  ['http', [['http, whatever the caller says', { ...PUBLIC_HOST, 'x-forwarded-proto': 'https' }, null]]],
])(
  'P9 browsers that came by https are told to come by it alone, where the config says %s',
  async (scheme, cases) => {
    using folder = folderWith(`public_url = "${scheme}://console.example.com"`);
    await using app = await startProcess(folder.args, folder.path);
    for (const [way, headers, expected] of cases)
      for (const path of PAGES) {
        const answer = await fetch(new URL(path, app.url), { headers, redirect: 'manual' });
        const told = answer.headers.get('strict-transport-security');
        expect([way, path, told]).toEqual([way, path, expected]);
      }
  },
  20_000,
);

describe('started by hand without an operator', () => {
  /** What it prints until it listens, to a terminal or to none. */
  async function printed({ args, path: cwd }: ReturnType<typeof folderWith>, isTerminal: boolean) {
    let text = '';
    const listening = Promise.withResolvers<void>();
    const take = (bytes: Uint8Array) => {
      text += new TextDecoder().decode(bytes);
      if (text.includes('"listening"')) listening.resolve();
    };
    const terminal = { cols: 300, rows: 50, data: (_: Bun.Terminal, bytes: Uint8Array) => take(bytes) };
    const output = isTerminal
      ? { terminal }
      : ({ stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' } as const);
    const child = Bun.spawn([process.execPath, ...args], { cwd, env: childEnv(), ...output });
    void (async () => {
      if (child.stdout instanceof ReadableStream) for await (const bytes of child.stdout) take(bytes);
    })();
    await Promise.race([listening.promise, child.exited]);
    child.kill('SIGTERM');
    await child.exited;
    return text;
  }
  const linkIn = (text: string) =>
    /^http:\/\/.*\/first-operator\?token=[\w-]{43}\s*$/m.exec(text)?.[0].trim();

  test('P8 a terminal shows a link that makes the first one, another at every start, and none once there is one', async () => {
    using folder = folderWith('');
    const first = linkIn(await printed(folder, true));
    const second = linkIn(await printed(folder, true));
    expect(first).toStartWith('http://127.0.0.1:');
    expect([second === undefined, second === first]).toEqual([false, false]);
    expect(existsSync(join(folder.dataDir, 'first-operator-link'))).toBe(false);
    const store = opened(join(folder.dataDir, ACCOUNTS_FILE), {});
    store.run("INSERT INTO users (id, email, role, created_at_ms) VALUES ('1', 'a@b.c', 'operator', 0)");
    store.close();
    expect(linkIn(await printed(folder, true))).toBeUndefined();
  }, 20_000);

  test('P8 what is no terminal gets the path of a file that its user alone can read, whatever was there', async () => {
    using folder = folderWith('');
    const file = join(folder.dataDir, 'first-operator-link');
    mkdirSync(folder.dataDir, { recursive: true });
    writeFileSync(file, 'anybody can read this', { mode: 0o666 });
    const text = await printed(folder, false);
    expect([text.includes(file), text.includes('token=')]).toEqual([true, false]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(linkIn(readFileSync(file, 'utf8'))).toStartWith('http://127.0.0.1:');
  }, 20_000);

  test('it has no login under plain http, and says what to do', async () => {
    using folder = folderWith('public_url = "http://console.example.com"');
    const text = await printed(folder, false);
    expect(text).toContain(
      'The console is off: browsers keep no login over plain http from console.example.com.',
    );
    expect(linkIn(text)).toBeUndefined();
    await using app = await startProcess(folder.args, folder.path);
    expect((await fetch(new URL('/login', app.url))).status).toBe(404);
  }, 20_000);
});

test('a login reads and changes webhooks, a change from its own pages alone, and not with a wrong key', async () => {
  using folder = folderWith('');
  using store = opened(join(folder.dataDir, ACCOUNTS_FILE), {
    ...ACCOUNTS_MIGRATIONS,
    ...DEPLOYS_MIGRATIONS,
  });
  addKey(store, 'trial');
  store.run(
    `INSERT INTO users (id, email, role, account_id, password_hash, created_at_ms)
     SELECT 'bob', 'bob@example.com', 'customer', id, ?, 0 FROM accounts`,
    [await argon2id.hash(PASSWORD)],
  );
  await using app = await startProcess(folder.args, folder.path);
  const visitor = createVisitor(app.url.origin, (request) => fetch(request, { redirect: 'manual' }));
  const statusOf = async (headers: Record<string, string>) =>
    (await visitor.get(WEBHOOKS_PATH, headers)).status;
  expect(await statusOf({})).toBe(401);
  expect((await logIn(visitor, 'bob@example.com')).status).toBe(303);
  expect([await statusOf({}), await statusOf({ 'x-token': 'sluice_wrong' })]).toEqual([200, 401]);
  for (const [headers, status] of [
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{}, 403],
    [{ 'sec-fetch-site': 'same-origin' }, 422],
  ] as const) {
    const change = { method: 'POST', headers, body: '{"url":"http://not.https"}' };
    expect((await visitor.send(WEBHOOKS_PATH, change)).status).toBe(status);
  }
}, 20_000);

describe('webhooks', () => {
  /** The headers of a new key. */
  function keyIn(dataDir: string) {
    using accounts = opened(join(dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
    return { 'x-token': addKey(accounts, null) };
  }
  /** The app, started on a folder, and how to ask it for webhooks. */
  async function started({ args, path, dataDir }: ReturnType<typeof folderWith>, headers = keyIn(dataDir)) {
    const app = await startProcess(args, path);
    // oxlint-disable-next-line no-explicit-any -- read member by member
    async function ask(body?: object): Promise<[number, any]> {
      const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) };
      const response = await fetch(new URL(WEBHOOKS_PATH, app.url), init);
      return [response.status, await response.json()];
    }
    return { ...app, headers, ask, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() };
  }
  const url = 'https://93.184.215.14/hook';

  test('are kept, their secrets only sealed, and the key of that for its owner; an endless body is refused', async () => {
    using folder = folderWith('');
    const app = await started(folder);
    expect((await app.ask({ url, description: 'x'.repeat(70_000) }))[0]).toBe(413);
    const [status, { secret, webhook }] = await app.ask({ url });
    expect([status, secret]).toEqual([201, expect.stringMatching(/^whsec_[0-9a-f]{64}$/)]);
    expect(statSync(join(folder.dataDir, 'secret')).mode & 0o777).toBe(0o600);
    for (const file of readdirSync(folder.dataDir))
      expect([file, readFileSync(join(folder.dataDir, file)).includes(secret)]).toEqual([file, false]);
    app.kill('SIGKILL');
    await app.exited;
    await using again = await started(folder, app.headers);
    expect(await again.ask()).toEqual([200, { webhooks: [webhook] }]);
  });

  test('of a backup without its sealing key are not started on, and are once the key is there', async () => {
    using folder = folderWith('');
    const secretPath = join(folder.dataDir, 'secret');
    {
      await using app = await started(folder);
      expect((await app.ask({ url }))[0]).toBe(201);
    }
    renameSync(secretPath, `${secretPath}.elsewhere`);
    const { code, stderr } = await runToEnd(folder.args, folder.path);
    const sentence = 'the secrets of 1 webhooks are encrypted with its key';
    expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)]);
    renameSync(`${secretPath}.elsewhere`, secretPath);
    await using again = await started(folder);
    expect((await again.ask())[0]).toBe(200);
  });
});
