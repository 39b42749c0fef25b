import { afterEach, beforeEach, expect, test } from 'bun:test';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { makeApiKey } from '../../shared/keys/api-key.ts';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { LEASE, SEEN } from '../../shared/publication.ts';
import { waited } from '../started/host.ts';
import { becomes, end, type Host, isPublishing, startHosts } from './hosts.ts';

/** A Redis that was put back to an older state, or has lost all, as the gateway of another host sees it. */
let hosts: Awaited<ReturnType<typeof startHosts>>;
let admin: Redis;
let one: Host;
let two: Host;
beforeEach(async () => {
  hosts = await startHosts();
  admin = new Redis(hosts.redis.port);
});
/** One publishes, and two has a gateway. */
async function begin(): Promise<void> {
  one = await hosts.publishing();
  two = hosts.host();
  await two.startGateway();
}
afterEach(async () => {
  admin.disconnect();
  await hosts[Symbol.asyncDispose]();
});

/** Puts all that Redis has now back in the place of what it has then. */
async function dump(): Promise<() => Promise<unknown>> {
  // The lease has ended by the time that an older state is put back.
  const names = (await admin.keys('{sluice:accounts}:*')).filter((name) => name !== LEASE);
  const texts = await Promise.all(names.map((name) => admin.dumpBuffer(name)));
  const restore = names.map((name, at) => ['restore', name, 0, texts[at] ?? '', 'REPLACE']);
  return () => admin.multi([['flushall'], ...restore]).exec();
}

const healthOf = async (host: Host) => {
  const response = await fetch(new URL('/health', host.gateway().url));
  return `${response.status} ${await response.text()}`;
};
const OLDER = /^200 ok, but Redis has older accounts .*\(generation \d+, revision \d+, and it had \d+, \d+\)/;
const unknown = () => makeApiKey((bytes) => crypto.getRandomValues(new Uint8Array(bytes)));
/** What each key gets, in their order, and one that never was. */
const statuses = (host: Host, ...keys: readonly string[]) =>
  Promise.all([...keys, unknown()].map((key) => host.status(key)));

async function create(): Promise<string> {
  const [made] = await one.cli('key', 'create', 'payer');
  return made?.['key'] ?? '';
}

test('a Redis that is put back to an older state revives no key and forgets none, until deploys has published again (E49)', async () => {
  await begin();
  const [old, payer] = [await one.key('old', 'pro'), await one.key('payer', 'pro')];
  await becomes(two, old.key, 200);
  const putBack = await dump();
  await admin.flushall(); // all is written anew, in another epoch
  const newer = await create();
  await becomes(two, newer, 200);
  await one.cli('key', 'revoke', old.id);
  await becomes(two, old.key, 401);
  await becomes(two, payer.key, 200);
  await end(one.deploys(), 'SIGTERM');

  await putBack();
  await waited(async () => OLDER.test(await healthOf(two)));
  expect(await statuses(two, newer, payer.key)).toEqual([200, 200, 503]);
  expect(await two.status(old.key)).not.toBe(200);
  await end(two.gateway(), 'SIGKILL');
  await two.startGateway();
  expect(await statuses(two, old.key, newer, payer.key)).toEqual([503, 200, 200, 503]);
  // One that was never there before knows it from the others.
  const three = hosts.host();
  await three.startGateway();
  expect(await statuses(three, old.key, payer.key)).toEqual([503, 503, 503]);
  const seen = new Set<number>();
  await one.startDeploys();
  await waited(async () => {
    for (const host of [two, three]) seen.add(await host.status(old.key));
    return (await two.status(unknown())) === 401;
  });
  expect([...seen]).not.toContain(200);
  await waited(async () => (await healthOf(two)) === '200 ok\n');
  for (const host of [two, three])
    expect(await statuses(host, old.key, newer, payer.key)).toEqual([401, 200, 200, 401]);
}, 60_000);

test('an older database that publishes to a Redis that has lost all waits for an operator, because a gateway has seen more; all follow then (E49)', async () => {
  await begin();
  const payer = await one.key('payer', 'pro');
  const store = one.accounts();
  const backup = store.serialize();
  store.close();
  const newer = await create();
  await becomes(two, newer, 200);
  await end(one.deploys(), 'SIGTERM');
  await admin.flushall();
  for (const name of [ACCOUNTS_FILE, `${ACCOUNTS_FILE}-wal`, `${ACCOUNTS_FILE}-shm`])
    rmSync(join(one.folder, name), { force: true });
  writeFileSync(join(one.folder, ACCOUNTS_FILE), backup);
  await waited(async () => (await admin.exists(SEEN)) === 1);

  await one.startDeploys();
  const said = async () => (await fetch(new URL('/health', one.deploys().url))).text();
  await waited(async () => (await said()).includes('older than what is published'));
  expect(await statuses(two, newer, payer.key)).toEqual([200, 503, 503]);
  await one.cli('deploys', 'take-over');
  await waited(isPublishing(one));
  await becomes(two, newer, 401);
  const later = await create();
  await becomes(two, later, 200);
  expect(await statuses(two, payer.key)).toEqual([200, 401]);
  await waited(async () => (await healthOf(two)) === '200 ok\n');
}, 60_000);
