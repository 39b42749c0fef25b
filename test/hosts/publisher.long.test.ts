import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { startBackend } from '../fakes/backend.ts';
import { addKey } from '../started/gateway.ts';
import { createHost, waited } from '../started/host.ts';
import { type StartedRedis, startRedis } from '../started/redis.ts';

/** Who may publish accounts, and what gateways beside a database that is not published do. */
let backend: ReturnType<typeof startBackend>;
let redis: StartedRedis;
const hosts: ReturnType<typeof createHost>[] = [];

beforeAll(() => void (backend = startBackend()));
afterAll(() => backend[Symbol.asyncDispose]());
beforeEach(async () => void (redis = await startRedis()));
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host[Symbol.asyncDispose]()));
  await redis[Symbol.asyncDispose]();
});

function host() {
  const made = createHost({ redisUrl: redis.url, backendUrl: backend.url });
  hosts.push(made);
  return made;
}
type Host = ReturnType<typeof host>;

const published = (each: Host) => async () =>
  (await each.metric('deploys', 'deploys_accounts_published')) === 1;
async function health(each: Host): Promise<string> {
  return (await fetch(new URL('/health', each.deploys().url))).text();
}
/** Has the accounts database of one host on another, as a copy of its files. */
function copyAccounts(from: Host, to: Host): void {
  for (const end of ['', '-wal']) {
    const name = `${ACCOUNTS_FILE}${end}`;
    if (existsSync(join(from.folder, name))) copyFileSync(join(from.folder, name), join(to.folder, name));
  }
}
async function stop(app: ReturnType<Host['deploys']>): Promise<void> {
  app.kill('SIGTERM');
  await app.exited;
}

describe('one host alone', () => {
  test('reads its own database at once, also while Redis or deploys are away, and before anything was published', async () => {
    const one = host();
    await one.startGateway();
    const first = await one.key('first', 'pro');
    await waited(async () => (await one.status(first.key)) === 200);
    await one.startDeploys();
    await waited(published(one));
    await redis.die();
    const second = await one.key('second', 'pro');
    await waited(async () => (await one.status(second.key)) === 200, 1_000);
    await stop(one.deploys());
    one.gateway().kill('SIGKILL');
    await one.gateway().exited;
    await one.startGateway();
    const third = await one.key('third', 'pro');
    await waited(async () => (await one.status(third.key)) === 200, 1_000);
  }, 30_000);

  test('is published in full when deploys starts with a Redis that is away, and comes later', async () => {
    const [one, two] = [host(), host()];
    await redis.die();
    await one.startDeploys();
    const { key } = await one.key('payer', 'pro');
    expect(await health(one)).not.toContain('not published');
    await redis.restart('empty');
    await waited(published(one));
    await two.startGateway();
    await waited(async () => (await two.status(key)) === 200);
  }, 30_000);
});

test('the first key of a host that was started without one works at once', async () => {
  const one = host();
  await one.startGateway();
  const accounts = one.accounts();
  const key = addKey(accounts, 'pro');
  accounts.close();
  expect(await one.status(key)).toBe(200);
}, 30_000);

test('a host without accounts calls no key invalid before any was published', async () => {
  const [one, two] = [host(), host()];
  await two.startGateway();
  const { key } = await one.key('payer', 'pro');
  expect(await two.status(key)).toBe(503);
  const told = await fetch(new URL('/health', two.gateway().url));
  expect([told.status, await told.text()]).toEqual([503, expect.stringContaining('no accounts are known')]);
  await one.startDeploys();
  await waited(async () => (await two.status(key)) === 200);
}, 30_000);

test('a host with accounts that has never reached Redis does not say that it has none', async () => {
  const one = host();
  await redis.die();
  const { key } = await one.key('payer', 'pro');
  await one.startGateway();
  expect(await one.status(key)).toBe(503);
  const told = await fetch(new URL('/health', one.gateway().url));
  expect([told.status, await told.text()]).toEqual([503, expect.stringContaining('was not reached yet')]);
}, 30_000);

describe('a second deploys', () => {
  test('with accounts of its own publishes nothing, says so, and goes on', async () => {
    const [one, two] = [host(), host()];
    await one.startDeploys();
    await waited(published(one));
    const before = await redis.cli('HGET', '{sluice:accounts}:head', 'origin');
    await two.startDeploys();
    await waited(async () => (await health(two)).includes('Redis has those of another database'));
    expect(await two.metric('deploys', 'deploys_accounts_published')).toBe(0);
    expect(await redis.cli('HGET', '{sluice:accounts}:head', 'origin')).toBe(before);
    await two.startGateway();
    const { key } = await one.key('payer', 'pro');
    await waited(async () => (await two.status(key)) === 200);
    for (const words of [
      ['account', 'create', 'x'],
      ['key', 'create', 'payer'],
      ['key', 'list'],
    ])
      await expect(two.cli(...words)).rejects.toThrow('managed on another host');
    // What this host counted is a part of it alone.
    await expect(two.cli('usage')).rejects.toThrow('managed on another host');
    expect(await two.cli('config', 'check')).toMatchObject([{ ok: true }]);
  }, 30_000);

  test('with a copy waits until the first is gone, then publishes, and the old host reads what it publishes', async () => {
    const [one, two] = [host(), host()];
    await one.startDeploys();
    await one.startGateway();
    const old = await one.key('old', 'pro');
    await waited(published(one));
    await waited(async () => (await one.status(old.key)) === 200);
    copyAccounts(one, two);
    await two.startDeploys();
    await waited(async () => (await health(two)).includes('Stop one of the two'));
    expect([await published(one)(), await published(two)()]).toEqual([true, false]);
    await stop(one.deploys());
    await waited(published(two));
    const { key } = await two.key('moved', 'pro');
    await two.cli('key', 'revoke', old.id);
    await waited(async () => (await one.status(key)) === 200 && (await one.status(old.key)) === 401);
    await expect(one.cli('key', 'create', 'old')).rejects.toThrow('managed on another host');
  }, 40_000);

  test('that was stopped in the middle and comes to while another publishes changes nothing any more', async () => {
    const [one, two] = [host(), host()];
    await one.startDeploys();
    await waited(published(one));
    copyAccounts(one, two);
    one.deploys().kill('SIGSTOP');
    await two.startDeploys();
    await waited(published(two));
    const holder = await redis.cli('HGET', '{sluice:accounts}:head', 'holder');
    const stray = await one.key('stray', 'pro');
    one.deploys().kill('SIGCONT');
    await waited(async () => (await one.metric('deploys', 'deploys_accounts_published')) === 0);
    expect(await redis.cli('HGET', '{sluice:accounts}:head', 'holder')).toBe(holder);
    const three = host();
    await three.startGateway();
    expect(await three.status(stray.key)).toBe(401);
  }, 40_000);
});

test('a backup that is put back is published as it is, and what came after it is gone everywhere', async () => {
  const [one, two, backup] = [host(), host(), host()];
  await one.startDeploys();
  await two.startGateway();
  const kept = await one.key('kept', 'pro');
  await waited(async () => (await two.status(kept.key)) === 200);
  await stop(one.deploys());
  copyAccounts(one, backup);
  await one.startDeploys();
  const lost = await one.key('lost', 'pro');
  await waited(async () => (await two.status(lost.key)) === 200);
  const accounts = one.accounts();
  for (let i = 0; i < 50; i++) accounts.run("UPDATE accounts SET suspended = 0 WHERE name = 'lost'");
  const { value } = accounts.query<{ value: number }, []>('SELECT value FROM revision').get() ?? { value: 0 };
  accounts.close();
  const seq = async () => Number(await redis.cli('HGET', '{sluice:accounts}:head', 'seq'));
  await waited(async () => (await seq()) === value);
  await stop(one.deploys());
  await Bun.$`rm -f ${join(one.folder, ACCOUNTS_FILE)}-wal ${join(one.folder, ACCOUNTS_FILE)}-shm`;
  copyAccounts(backup, one);
  const after = await one.key('after', 'pro');
  await one.startDeploys();
  await waited(async () => (await two.status(after.key)) === 200);
  await waited(async () => (await two.status(lost.key)) === 401);
  expect(await two.status(kept.key)).toBe(200);
  // Limits know accounts by revisions too, and keep what the highest said.
  await one.key('later', 'pro');
  await waited(async () => (await seq()) > value, 2_000);
}, 40_000);
