import { afterEach, beforeEach, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { spentOf } from '../../shared/ledger/schema.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { startBackend } from '../fakes/backend.ts';
import { addKey, JSON_HEADERS, opened, temporaryFolder } from '../started/gateway.ts';
import { childEnv, hasOpen, ROOT, startProcess } from '../started/process.ts';
import { freePort } from '../started/ports.ts';
import { until } from '../started/stack.ts';

const MAIN = join(ROOT, 'gateway/main.ts');
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';

let folder: ReturnType<typeof temporaryFolder>;
let backend: ReturnType<typeof startBackend>;
beforeEach(() => {
  folder = temporaryFolder();
  backend = startBackend();
});
afterEach(async () => {
  await backend[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Writes a config into the folder; `extra` is TOML at its end. */
function config(listen = '127.0.0.1:0', extra = ''): string {
  const path = join(folder.path, 'sluice.toml');
  const text = `[gateway]\nlisten = "${listen}"\nmetrics = "127.0.0.1:0"\n[storage]\ndata_dir = "${folder.path}"\n[[backends]]\nname = "a"\nurl = "${backend.url}"\n${extra}`;
  writeFileSync(path, text);
  return path;
}

function keyOf(plan: string, credits = 0): string {
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const key = addKey(accounts, plan, credits);
  accounts.close();
  return key;
}

const start = (path: string) => startProcess([MAIN, '--config', path], folder.path);
const post = (url: URL, key: string, body = CALL) =>
  fetch(url, { method: 'POST', body, headers: { ...JSON_HEADERS, 'x-token': key } });

test('kill -9 under load loses no charge and doubles none: what was answered was written', async () => {
  const CREDITS = 400;
  const path = config('127.0.0.1:0', '[plans.trial]\nrps = 100000\nburst = 100000\n');
  const key = keyOf('trial', CREDITS);
  let answered = 0;
  for (let round = 0; round < 4; round++) {
    await using gateway = await start(path);
    const enough = Promise.withResolvers<void>();
    let here = 0;
    const load = Array.from({ length: 8 }, async () => {
      for (;;) {
        const { status } = await post(gateway.url, key);
        if (status !== 200) return;
        answered++;
        if (++here === 60) enough.resolve();
      }
    });
    await enough.promise;
    gateway.kill('SIGKILL');
    await Promise.allSettled(load);
  }
  const ledger = opened(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
  const spent = spentOf(ledger, 1);
  ledger.close();
  // Each kill can leave at most the 8 calls in flight paid for and not answered; none is answered unpaid.
  expect(spent).toBeGreaterThanOrEqual(answered);
  expect(backend.seen.length).toBeLessThanOrEqual(spent);
  expect(spent - answered).toBeLessThanOrEqual(4 * 8);

  await using gateway = await start(path);
  let last = 0;
  while ((await post(gateway.url, key)).status === 200) last++;
  expect(spent + last).toBe(CREDITS);
  expect((await post(gateway.url, key)).status).toBe(402);
});

test('a demo key of the embedded chain is good for nothing once backends are configured', async () => {
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const key = addKey(accounts, 'pro');
  accounts.run("UPDATE accounts SET name = 'demo'");
  accounts.run("UPDATE keys SET name = 'demo'");
  const other = addKey(accounts, 'pro');
  accounts.close();
  await using gateway = await start(config());
  expect([(await post(gateway.url, key)).status, (await post(gateway.url, other)).status]).toEqual([
    401, 200,
  ]);
});

test('SIGINT ends an idle gateway with 0', async () => {
  await using gateway = await start(config());
  gateway.kill('SIGINT');
  expect(await gateway.exited).toBe(0);
});

test('a stop that comes while the gateway still waits for its database is a stop', async () => {
  const path = config();
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  accounts.run('PRAGMA locking_mode = EXCLUSIVE');
  accounts.run("INSERT INTO accounts (name, created_at_ms) VALUES ('payer', 0)"); // takes the lock, and keeps it
  const child = Bun.spawn([process.execPath, MAIN, '--config', path], {
    cwd: folder.path,
    env: childEnv(),
    stdout: 'ignore',
    stderr: 'inherit',
  });
  await until(() => Promise.resolve(hasOpen(child.pid, ACCOUNTS_FILE)));
  child.kill('SIGTERM');
  accounts.run('PRAGMA locking_mode = NORMAL');
  accounts.query('SELECT 1 FROM accounts').get(); // gives it up
  expect(await child.exited).toBe(0);
});

test('a SIGHUP that comes while the gateway starts does not end it, and is not lost', async () => {
  const listen = `127.0.0.1:${freePort()}`;
  const path = config(listen, '[plans.tiny]\nrps = 1000\nmax_batch = 1\n');
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  accounts.run('PRAGMA locking_mode = EXCLUSIVE');
  const key = addKey(accounts, 'tiny'); // takes the lock, and keeps it
  const child = Bun.spawn([process.execPath, MAIN, '--config', path], {
    cwd: folder.path,
    env: childEnv(),
    stdout: 'ignore',
    stderr: 'inherit',
  });
  await until(() => Promise.resolve(hasOpen(child.pid, ACCOUNTS_FILE)));
  config(listen, '[plans.tiny]\nrps = 1000\nmax_batch = 2\n');
  child.kill('SIGHUP');
  accounts.run('PRAGMA locking_mode = NORMAL');
  accounts.query('SELECT 1 FROM accounts').get(); // gives it up
  const batch = `[${CALL},${CALL}]`;
  const answered = async () => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
    return (await post(new URL(`http://${listen}`), key, batch).catch(() => undefined))?.ok;
  };
  await until(answered);
  child.kill('SIGTERM');
  expect(await child.exited).toBe(0);
});

test('when its standard input ends, as it does when its parent dies, the gateway ends too', async () => {
  await using gateway = await start(config());
  gateway.endInput();
  expect(await gateway.exited).toBe(0);
});
