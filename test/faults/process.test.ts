import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { spentOf } from '../../shared/ledger/schema.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { startBackend } from '../fakes/backend.ts';
import { addKey, JSON_HEADERS, opened, temporaryFolder } from '../started/gateway.ts';
import { childEnv, hasOpen, startProcess } from '../started/process.ts';
import { freePort } from '../started/ports.ts';
import { until } from '../started/stack.ts';
import { CALL, crewConfig, startAlone } from '../started/crew.ts';

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

/** Writes a config into the folder; gives the arguments of a gateway with it. `extra` is TOML at its end. */
const config = (extra = '', listen?: string) =>
  crewConfig(folder.path, { backendUrl: backend.url, processes: 1, extra, ...(listen && { listen }) }).args;
const openAccounts = () => opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);

const post = (url: URL, key: string, body = CALL) =>
  fetch(url, { method: 'POST', body, headers: { ...JSON_HEADERS, 'x-token': key } });

test('kill -9 under load loses no charge and doubles none: what was answered was written', async () => {
  const CREDITS = 400;
  const args = config('[plans.trial]\nrps = 100000\nburst = 100000\n');
  using accounts = openAccounts();
  const key = addKey(accounts, 'trial', CREDITS);
  let answered = 0;
  for (let round = 0; round < 4; round++) {
    await using gateway = await startProcess(args, folder.path);
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
  using ledger = opened(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
  const spent = spentOf(ledger, 1);
  // Each kill can leave at most the 8 calls in flight paid for and not answered; none is answered unpaid.
  expect(spent).toBeGreaterThanOrEqual(answered);
  expect(backend.seen.length).toBeLessThanOrEqual(spent);
  expect(spent - answered).toBeLessThanOrEqual(4 * 8);

  await using gateway = await startProcess(args, folder.path);
  let last = 0;
  while ((await post(gateway.url, key)).status === 200) last++;
  expect(spent + last).toBe(CREDITS);
  expect((await post(gateway.url, key)).status).toBe(402);
});

test('a demo key of the embedded chain is good for nothing once backends are configured', async () => {
  using accounts = openAccounts();
  const key = addKey(accounts, 'pro');
  accounts.run("UPDATE accounts SET name = 'demo'");
  accounts.run("UPDATE keys SET name = 'demo'");
  const other = addKey(accounts, 'pro');
  await using gateway = await startProcess(config(), folder.path);
  const statuses = [(await post(gateway.url, key)).status, (await post(gateway.url, other)).status];
  expect(statuses).toEqual([401, 200]);
});

test('SIGINT ends an idle gateway with 0, and so does the end of its standard input, as when its parent dies', async () => {
  for (const end of ['SIGINT', 'input'] as const) {
    await using gateway = await startAlone(backend.url);
    if (end === 'input') gateway.endInput();
    else gateway.kill(end);
    expect(await gateway.exited).toBe(0);
  }
});

/** A gateway that waits for its database, which `accounts` holds until it is released. */
async function startWaiting(args: readonly string[]) {
  const accounts = openAccounts();
  accounts.run('PRAGMA locking_mode = EXCLUSIVE');
  const key = addKey(accounts, 'tiny'); // takes the lock, and keeps it
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: folder.path,
    env: childEnv(),
    stdout: 'ignore',
    stderr: 'inherit',
  });
  await until(() => Promise.resolve(hasOpen(child.pid, ACCOUNTS_FILE)));
  const release = () => {
    accounts.run('PRAGMA locking_mode = NORMAL');
    accounts.query('SELECT 1 FROM accounts').get(); // releases the lock
  };
  return { child, key, release };
}

test('a stop that comes while the gateway still waits for its database is a stop', async () => {
  const { child, release } = await startWaiting(config());
  child.kill('SIGTERM');
  release();
  expect(await child.exited).toBe(0);
});

test('a gateway waits for its database while another process holds it; a SIGHUP in that time does not end it, and is not lost', async () => {
  const listen = `127.0.0.1:${freePort()}`;
  const { child, key, release } = await startWaiting(
    config('[plans.tiny]\nrps = 1000\nmax_batch = 1\n', listen),
  );
  config('[plans.tiny]\nrps = 1000\nmax_batch = 2\n', listen);
  child.kill('SIGHUP');
  release();
  const batch = `[${CALL},${CALL}]`;
  await until(async () => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
    return (await post(new URL(`http://${listen}`), key, batch).catch(() => undefined))?.ok;
  });
  child.kill('SIGTERM');
  expect(await child.exited).toBe(0);
});
