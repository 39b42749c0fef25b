import { afterEach, beforeEach, expect, test } from 'bun:test';
import { copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { sluiceAlone } from '../cli/sluice.ts';
import { queueOver } from '../deploys/outbox/queue.ts';
import { waited } from '../started/host.ts';
import { becomes, end, type Host, isPublishing, startHosts } from './hosts.ts';

/** Copies of one database beside each other: the old host after a move, a backup that was put back. */
let hosts: Awaited<ReturnType<typeof startHosts>>;
let one: Host;
let two: Host;
beforeEach(async () => {
  hosts = await startHosts();
  [one, two] = [hosts.host(), hosts.host()];
});
afterEach(() => hosts[Symbol.asyncDispose]());

const healthOf = async (host: Host) => {
  const response = await fetch(new URL('/health', host.deploys().url));
  return `${response.status} ${await response.text()}`;
};
const saysHealth = (host: Host, text: string) => waited(async () => (await healthOf(host)).includes(text));
/** What the program API says to who has a key. */
const deploysSays = async (host: Host, key: string) => {
  const response = await fetch(new URL(PROGRAMS_PATH, host.deploys().url), { headers: { 'x-token': key } });
  return `${response.status} ${await response.text()}`;
};
const head = (field: string) => hosts.redis.cli('HGET', '{sluice:accounts}:head', field);

/** Has the accounts database of one folder in another, as the copy of its files that an operator makes. */
function copyAccounts(from: string, to: string): void {
  for (const name of ['secret', ACCOUNTS_FILE, `${ACCOUNTS_FILE}-wal`, `${ACCOUNTS_FILE}-shm`]) {
    rmSync(join(to, name), { force: true });
    if (existsSync(join(from, name)) && !name.endsWith('-shm'))
      copyFileSync(join(from, name), join(to, name));
  }
}
const kept = (host: Host) => {
  const folder = hosts.host().folder;
  copyAccounts(host.folder, folder);
  return { putBack: (to: Host) => copyAccounts(folder, to.folder) };
};

/** A delivery that is due, on a host whose addresses nothing can be sent to: what was tried stands in its attempts. */
function makeDue(host: Host, slot: number): void {
  const store = host.accounts();
  const queue = queueOver(store);
  if (queue.rows("SELECT id FROM webhooks WHERE id = 'hook'").length === 0) queue.addWebhook('hook');
  queue.upgrade('A', slot, Date.now());
  store.close();
}
function attempts(host: Host): number {
  const store = host.accounts();
  const rows = store.query<{ n: number }, []>('SELECT count(*) AS n FROM attempts').get();
  store.close();
  return rows?.n ?? 0;
}
const triedTimes = (host: Host, count: number) => waited(() => attempts(host) >= count);

test('the old copy after a move publishes, sends and changes nothing from its start on, whether the new one runs or not (E42)', async () => {
  const payer = await one.key('payer', 'pro');
  await one.startDeploys();
  await waited(isPublishing(one));
  makeDue(one, 1);
  await triedTimes(one, 1);
  await end(one.deploys(), 'SIGTERM');
  copyAccounts(one.folder, two.folder);
  await two.startDeploys();
  await waited(isPublishing(two));
  await two.startGateway();
  await becomes(two, payer.key, 200);
  const [moved] = await two.cli('key', 'create', 'payer');
  await two.cli('key', 'revoke', payer.id);
  const works = async () => [await two.status(moved?.['key'] ?? ''), await two.status(payer.key)];
  await waited(async () => Bun.deepEquals(await works(), [200, 401]));

  makeDue(one, 2);
  const before = attempts(one);
  for (const state of ['running', 'stopped']) {
    await one.startDeploys();
    await saysHealth(one, '(generation 1, published is 2)');
    expect(await healthOf(one)).toStartWith('503 ');
    expect(await healthOf(one)).toContain('bun run sluice deploys take-over');
    await Bun.sleep(1_500); // longer than the worker's longest pause: nothing is to come
    expect([attempts(one), await head('generation'), await works()]).toEqual([before, '2', [200, 401]]);
    await expect(one.cli('key', 'create', 'payer')).rejects.toThrow('older than what deploys has published');
    await end(one.deploys(), 'SIGTERM');
    if (state === 'running') await end(two.deploys(), 'SIGTERM');
  }
  // The true one comes back as if nothing had been.
  await two.startDeploys();
  await waited(isPublishing(two));
  expect(await works()).toEqual([200, 401]);
}, 40_000);

test('a backup that is put back is refused until an operator says that it counts; revoked keys stay revoked then (E42)', async () => {
  const [old, payer] = [await one.key('old', 'pro'), await one.key('payer', 'pro')];
  await one.startDeploys();
  await waited(isPublishing(one));
  await end(one.deploys(), 'SIGTERM');
  const backup = kept(one);
  await one.startDeploys();
  await one.startGateway();
  await waited(isPublishing(one));
  await one.cli('key', 'revoke', old.id);
  await becomes(one, old.key, 401);
  await end(one.deploys(), 'SIGTERM');
  await end(one.gateway(), 'SIGTERM');

  backup.putBack(one);
  await one.startDeploys();
  await one.startGateway();
  await saysHealth(one, 'This database is older than what is published');
  expect([await one.status(old.key), await one.status(payer.key)]).toEqual([401, 200]);
  for (const { key } of [old, payer])
    expect(await deploysSays(one, key)).toBe('503 {"error":"Key check unavailable"}');
  const said = await sluiceAlone(one.folder, ['deploys', 'take-over', '--config', one.config]);
  expect([said.code, said.out]).toEqual([
    0,
    expect.stringContaining('keys that were revoked there stay revoked'),
  ]);
  const statuses: number[] = [];
  await waited(async () => {
    statuses.push(await one.status(old.key));
    return isPublishing(one)();
  });
  await saysHealth(one, 'This database took over as generation 3');
  statuses.push(await one.status(old.key));
  expect([new Set(statuses), await one.status(payer.key)]).toEqual([new Set([401]), 200]);
  expect(await one.cli('audit')).toMatchObject(
    expect.arrayContaining([
      expect.objectContaining({ action: 'deploys.take-over' }),
      expect.objectContaining({ action: 'key.revoke', subject: old.id }),
    ]),
  );
  expect(await deploysSays(one, old.key)).toBe('401 {"error":"Invalid or inactive API key"}');
  expect(await deploysSays(one, payer.key)).not.toMatch(/key/i);
  makeDue(one, 1);
  await triedTimes(one, 1);
}, 40_000);

test('a gateway reads nothing from a backup that was made while its publisher ran: keys revoked since stay revoked (E42)', async () => {
  const [old, payer] = [await one.key('old', 'pro'), await one.key('payer', 'pro')];
  await one.startDeploys();
  await one.startGateway();
  await waited(isPublishing(one));
  await becomes(one, old.key, 200);
  const store = one.accounts();
  const backup = store.serialize();
  store.close();
  await one.cli('key', 'revoke', old.id);
  await becomes(one, old.key, 401);
  await end(one.deploys(), 'SIGTERM');
  await end(one.gateway(), 'SIGTERM');

  for (const name of [ACCOUNTS_FILE, `${ACCOUNTS_FILE}-wal`, `${ACCOUNTS_FILE}-shm`])
    rmSync(join(one.folder, name), { force: true });
  writeFileSync(join(one.folder, ACCOUNTS_FILE), backup);
  await one.startGateway();
  const statuses = [await one.status(old.key)];
  await one.startDeploys();
  await saysHealth(one, 'This database is older than what is published');
  statuses.push(await one.status(old.key), await one.status(payer.key));
  expect(statuses).toEqual([401, 401, 200]);
  await one.cli('deploys', 'take-over');
  await waited(isPublishing(one));
  await saysHealth(one, 'This database took over');
  expect([await one.status(old.key), await one.status(payer.key)]).toEqual([401, 200]);
}, 40_000);

test('a start that cannot reach Redis sends nothing and takes no changes until it knows that no newer copy is in use (E42)', async () => {
  await one.startDeploys();
  await waited(isPublishing(one));
  await end(one.deploys(), 'SIGTERM');
  copyAccounts(one.folder, two.folder);
  await two.startDeploys();
  await waited(isPublishing(two));
  await end(two.deploys(), 'SIGTERM');
  await hosts.redis.die();
  for (const host of [one, two]) {
    makeDue(host, 1);
    await host.startDeploys();
    await saysHealth(host, 'not known whether a newer copy');
  }
  await Bun.sleep(1_500); // longer than the worker's longest pause
  expect([attempts(one), attempts(two)]).toEqual([0, 0]);
  await hosts.redis.restart('with its data');
  await triedTimes(two, 1);
  await saysHealth(one, 'This database is older');
  expect(attempts(one)).toBe(0);
}, 40_000);

test('a Redis outage is told while it lasts, holds deliveries back and keeps what is known working (E44)', async () => {
  await one.startDeploys();
  await waited(isPublishing(one));
  makeDue(one, 1);
  await triedTimes(one, 1);
  await hosts.redis.die();
  await saysHealth(one, 'Redis does not answer: changes of accounts and keys do not reach gateways');
  expect(await healthOf(one)).not.toContain('older');
  makeDue(one, 2);
  await one.key('made in the outage', 'pro');
  await Bun.sleep(1_500); // longer than the worker's longest pause
  expect(attempts(one)).toBe(1);
  await hosts.redis.restart('with its data');
  await triedTimes(one, 2);
  await waited(async () => !(await healthOf(one)).includes('Redis'));
}, 40_000);
