import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { type ApiKey, hashOf } from '../../shared/keys/api-key.ts';
import { waited } from '../started/host.ts';
import { becomes, end, type Host, isPublishing, startHosts } from './hosts.ts';

/** A second host that has nothing but Redis. */
let hosts: Awaited<ReturnType<typeof startHosts>>;
let one: Host;
let two: Host;
beforeEach(async () => {
  hosts = await startHosts();
  [one, two] = [await hosts.publishing(), hosts.host()];
});
afterEach(() => hosts[Symbol.asyncDispose]());

/** What a change may take to be known on the other host, in milliseconds. */
const KNOWN_MS = 1_000;
/** When a gateway has noticed that Redis is away: two seconds and a look. */
const STALE_MS = 2_600;

describe('a gateway on a second host', () => {
  test('knows keys a second after they are made, and refuses them a second after they are revoked, in each process', async () => {
    const many = hosts.host(3);
    await many.startGateway();
    const { key, id } = await one.key('payer', 'scale');
    const statuses = async () =>
      new Set(await Promise.all(Array.from({ length: 30 }, () => many.status(key))));
    await Bun.sleep(KNOWN_MS); // the promise is a second; asking on the way would be guessing keys
    expect(await statuses()).toEqual(new Set([200]));
    await one.cli('key', 'revoke', id);
    await Bun.sleep(KNOWN_MS);
    expect(await statuses()).toEqual(new Set([401]));
    expect(await many.status('sluice_nonsense')).toBe(401);
  }, 30_000);

  test('follows a rotation with its grace, a suspension and another plan', async () => {
    await two.startGateway();
    const { key, id } = await one.key('payer', 'pro');
    await becomes(two, key, 200);
    const [heir] = await one.cli('key', 'rotate', id, '--grace', '2s');
    const untilMs = performance.now() + 2_000;
    const next = heir?.['key'] ?? '';
    expect(await becomes(two, next, 200)).toBeLessThan(KNOWN_MS);
    expect(await two.status(key)).toBe(200);
    await waited(() => performance.now() > untilMs);
    expect(await two.status(key)).toBe(401);

    const accounts = one.accounts();
    accounts.run("UPDATE accounts SET suspended = 1 WHERE name = 'payer'");
    expect(await becomes(two, next, 401)).toBeLessThan(KNOWN_MS);
    accounts.run("UPDATE accounts SET suspended = 0 WHERE name = 'payer'");
    accounts.close();
    await becomes(two, next, 200);

    const policy = async () => (await two.post(next)).headers.get('ratelimit-policy');
    expect(await policy()).toContain('q=200;w=2');
    await one.cli('account', 'set', 'payer', '--plan', 'starter');
    expect(await waited(async () => (await policy())?.includes('q=50;w=2') ?? false)).toBeLessThan(KNOWN_MS);
  }, 30_000);

  test.each(['gateway', 'deploys'] as const)(
    "has other plans a second after a SIGHUP to the first host's %s",
    async (app) => {
      await Promise.all([one.startGateway(), two.startGateway()]);
      const { key } = await one.key('payer', 'starter');
      await becomes(two, key, 200);
      one.configure('[plans.starter]\nrps = 7\nburst = 21\n');
      one[app]().kill('SIGHUP');
      const follows = async (host: typeof one) =>
        (await host.post(key)).headers.get('ratelimit-policy')?.includes('q=21;w=3') ?? false;
      expect(await waited(async () => (await follows(one)) && (await follows(two)))).toBeLessThan(KNOWN_MS);
      expect(await isPublishing(one)()).toBe(true);
    },
    30_000,
  );

  test("keeps a plan with accounts on it that the first host's file has lost, and says so", async () => {
    await Promise.all([one.startGateway(), two.startGateway()]);
    one.configure('[plans.gold]\nrps = 1000\n');
    const { key } = await one.key('payer', 'gold');
    await waited(async () => (await two.status(key)) === 200 && (await one.status(key)) === 200);
    one.configure('');
    one.deploys().kill('SIGHUP');
    const line = 'Plan gold is gone from the config, but accounts still use it: 1.';
    await waited(() => [one.deploys(), one.gateway()].every((app) => app.printed().includes(line)));
    expect(one.deploys().printed()).toContain('plans and credits were not republished');
    expect([await one.status(key), await two.status(key)]).toEqual([200, 200]);
    const terms = JSON.parse(await hosts.redis.cli('HGET', '{sluice:accounts}:head', 'terms'));
    expect(terms.plans).toHaveProperty('gold');
  }, 30_000);

  test('goes on with known keys while Redis is away, also after a restart, and never calls one invalid that it has not seen', async () => {
    await two.startGateway();
    const { key } = await one.key('payer', 'pro');
    await becomes(two, key, 200);
    await hosts.redis.die();
    expect(await two.status(key)).toBe(200);
    const unseen = await one.key('unseen', 'pro');
    await two.status(unseen.key); // may still be unknown, for Redis was there a moment ago
    await Bun.sleep(STALE_MS); // asking on the way would be guessing keys
    expect(await two.status(unseen.key)).toBe(503);
    await end(two.gateway(), 'SIGKILL');
    await two.startGateway();
    expect(await two.status(key)).toBe(200);
    await hosts.redis.restart('empty');
    const later = await one.key('later', 'pro');
    await becomes(two, later.key, 200);
    expect(await two.status(key)).toBe(200);
  }, 30_000);

  test("tells the first host when its keys were used, and no key's material is anywhere in Redis", async () => {
    const { redis } = hosts;
    await two.startGateway();
    const { key, id } = await one.key('payer', 'pro');
    await becomes(two, key, 200);
    const lastUse = async () =>
      (await one.cli('key', 'list')).find((row) => row['key_id'] === id)?.['last_used_at'];
    await waited(async () => typeof (await lastUse()) === 'string');
    expect(Date.parse((await lastUse()) ?? '')).toBeWithin(Date.now() - 15_000, Date.now() + 1);
    const material = key.slice('sluice_'.length);
    const rows = ['keys', 'accounts', 'head'].map((name) =>
      redis.cli('HGETALL', `{sluice:accounts}:${name}`),
    );
    const log = redis.cli('XRANGE', '{sluice:accounts}:log', '-', '+');
    const all = (await Promise.all([...rows, log])).join('\n');
    expect(all).toContain(id);
    expect(all).not.toContain(material.slice(0, 12));
    expect(all).not.toContain(material.slice(-12));
    const names = await hosts.redis.cli('--scan');
    expect(names).not.toContain(id);
    expect(names).not.toContain(hashOf(key as ApiKey).toString('hex')); // made by the command line
  }, 30_000);
});
