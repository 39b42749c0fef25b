import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { addKey } from '../started/gateway.ts';
import { waited } from '../started/host.ts';
import { becomes, end, type Host, isPublishing, startHosts } from './hosts.ts';

/** Who may publish accounts, and what gateways beside a database that is not published do. */
let hosts: Awaited<ReturnType<typeof startHosts>>;
let one: Host;
let two: Host;
beforeEach(async () => {
  hosts = await startHosts();
  [one, two] = [hosts.host(), hosts.host()];
});
afterEach(() => hosts[Symbol.asyncDispose]());

const healthOf = async (app: ReturnType<Host['deploys']>) =>
  (await fetch(new URL('/health', app.url))).text();
const head = (field: string) => hosts.redis.cli('HGET', '{sluice:accounts}:head', field);
/** Has the accounts database of one host on another, as a copy of its files. */
function copyAccounts(from: Host, to: Host): void {
  for (const end of ['', '-wal']) {
    const name = `${ACCOUNTS_FILE}${end}`;
    if (existsSync(join(from.folder, name))) copyFileSync(join(from.folder, name), join(to.folder, name));
  }
}
describe('one host alone', () => {
  test('reads its own database at once, also while Redis or deploys are away, and before anything was published', async () => {
    await one.startGateway();
    const accounts = one.accounts();
    const first = addKey(accounts, 'pro');
    accounts.close();
    expect(await one.status(first)).toBe(200); // the first of a host that was started without one
    await one.startDeploys();
    await waited(isPublishing(one));
    await hosts.redis.die();
    const second = await one.key('second', 'pro');
    await becomes(one, second.key, 200);
    await end(one.deploys(), 'SIGTERM');
    await end(one.gateway(), 'SIGKILL');
    await one.startGateway();
    const third = await one.key('third', 'pro');
    await becomes(one, third.key, 200);
  }, 30_000);

  test('is published in full when deploys starts with a Redis that is away, and comes later', async () => {
    await hosts.redis.die();
    await one.startDeploys();
    const { key } = await one.key('payer', 'pro');
    expect(await healthOf(one.deploys())).not.toContain('not published');
    await hosts.redis.restart('empty');
    await waited(isPublishing(one));
    await two.startGateway();
    await becomes(two, key, 200);
  }, 30_000);
});

test('a host without accounts calls no key invalid before any was published, nor one that never reached Redis', async () => {
  await two.startGateway();
  const { key } = await one.key('payer', 'pro');
  expect(await two.status(key)).toBe(503);
  expect(await healthOf(two.gateway())).toContain('no accounts are known');
  await one.startDeploys();
  await becomes(two, key, 200);
  await hosts.redis.die();
  const three = hosts.host();
  await three.key('payer', 'pro');
  await three.startGateway();
  expect(await three.status(key)).toBe(503);
  expect(await healthOf(three.gateway())).toContain('was not reached yet');
}, 30_000);

describe('a second deploys', () => {
  test('with accounts of its own publishes nothing, says so, and goes on', async () => {
    await one.startDeploys();
    await waited(isPublishing(one));
    const before = await head('origin');
    await two.startDeploys();
    await waited(async () => (await healthOf(two.deploys())).includes('Redis has those of another database'));
    expect(await two.metric('deploys', 'deploys_accounts_published')).toBe(0);
    expect(await head('origin')).toBe(before);
    await two.startGateway();
    const { key } = await one.key('payer', 'pro');
    await becomes(two, key, 200);
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

  test('with a copy waits while the first runs; when that is gone and it is started again it publishes, and the old host reads that', async () => {
    await one.startDeploys();
    await one.startGateway();
    const old = await one.key('old', 'pro');
    await waited(isPublishing(one));
    await becomes(one, old.key, 200);
    // A copy of what is not published yet would be older than what is published then.
    await waited(async () => (await hosts.redis.cli('HEXISTS', '{sluice:accounts}:keys', old.id)) === '1');
    copyAccounts(one, two);
    await two.startDeploys();
    await waited(async () => (await healthOf(two.deploys())).includes('Stop one of the two'));
    expect([await isPublishing(one)(), await isPublishing(two)()]).toEqual([true, false]);
    await end(one.deploys(), 'SIGTERM');
    // By itself it would wait for a minute.
    await end(two.deploys(), 'SIGTERM');
    await two.startDeploys();
    await waited(isPublishing(two));
    const { key } = await two.key('moved', 'pro');
    await two.cli('key', 'revoke', old.id);
    await waited(async () => (await one.status(key)) === 200 && (await one.status(old.key)) === 401);
    await expect(one.cli('key', 'create', 'old')).rejects.toThrow('managed on another host');
  }, 40_000);
});
