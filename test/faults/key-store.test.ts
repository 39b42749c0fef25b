import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createKeys } from '../../deploys/accounts/keys.ts';
import { systemClock } from '../../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { objectsOf, sluice } from '../cli/sluice.ts';
import { startBackend } from '../fakes/backend.ts';
import { addKey, JSON_HEADERS, opened, startGateway, temporaryFolder } from '../started/gateway.ts';
import { startProcess } from '../started/process.ts';
import { until } from '../started/stack.ts';
import { crewConfig, startCrew } from './gateway-crew.ts';
import { CALL, countingLookUps } from './key-guesses.ts';

const CHECK_UNAVAILABLE =
  '503 {"jsonrpc":"2.0","error":{"code":-503,"message":"Key check unavailable"},"id":1}';

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

/** A gateway as a process of its own, with its accounts as another process sees them. */
async function startAlone() {
  const folder = temporaryFolder();
  const { args, path } = crewConfig(folder.path, { backendUrl: backend.url, processes: 1 });
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const started = await startProcess(args, folder.path);
  const post = (key: string) =>
    fetch(started.url, { method: 'POST', body: CALL, headers: { ...JSON_HEADERS, 'x-token': key } });
  return {
    ...started,
    folder: folder.path,
    config: path,
    accounts,
    post,
    status: async (key: string) => (await post(key)).status,
    key: () => addKey(accounts, 'scale'),
    async [Symbol.asyncDispose]() {
      accounts.close();
      await started[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

describe('E3 when keys cannot be read', () => {
  test('E3 known keys go on, others get 503 and never 401, and all is well again without a restart', async () => {
    await using gateway = await startAlone();
    const [known, unseen] = [gateway.key(), gateway.key()];
    expect(await gateway.status(known)).toBe(200);
    gateway.accounts.run('ALTER TABLE keys RENAME TO hidden');
    gateway.accounts.run('ALTER TABLE revision RENAME TO hidden_revision');
    for (let i = 0; i < 4; i++) {
      const refused = await gateway.post(unseen);
      expect(`${refused.status} ${await refused.text()}`).toBe(CHECK_UNAVAILABLE);
      expect(refused.headers.get('retry-after')).toBe('1');
      expect(await gateway.status(known)).toBe(200);
      await Bun.sleep(150); // the outage lasts over several looks at the revision
    }
    gateway.accounts.run('ALTER TABLE hidden_revision RENAME TO revision');
    gateway.accounts.run('ALTER TABLE hidden RENAME TO keys');
    expect([await gateway.status(unseen), await gateway.status(known)]).toEqual([200, 200]);
  });

  test('E3 known keys go on also when a change was noticed just before, which every key is read again for', async () => {
    await using gateway = await startAlone();
    const known = gateway.key();
    expect(await gateway.status(known)).toBe(200);
    gateway.accounts.transaction(() => {
      gateway.accounts.run("UPDATE accounts SET name = 'another'");
      gateway.accounts.run('ALTER TABLE keys RENAME TO hidden');
    })();
    await Bun.sleep(600); // twice the time in which a change is noticed
    expect(await gateway.status(known)).toBe(200);
    gateway.accounts.run('ALTER TABLE hidden RENAME TO keys');
    expect(await gateway.status(known)).toBe(200);
  });

  test('E3 no request waits while another process is writing for long, though uses are to be written', async () => {
    await using gateway = await startAlone();
    const keys = [gateway.key(), gateway.key()];
    gateway.accounts.run('BEGIN IMMEDIATE');
    const untilMs = performance.now() + 1_500;
    let longestMs = 0;
    for (let i = 0; performance.now() < untilMs; i++) {
      const sinceMs = performance.now();
      expect(await gateway.status(keys[i % 2] ?? '')).toBe(200);
      longestMs = Math.max(longestMs, performance.now() - sinceMs);
      await Bun.sleep(5); // below the plan's rate
    }
    gateway.accounts.run('ROLLBACK');
    expect(longestMs).toBeLessThan(750);
  });

  test('E3 a gateway that starts while another process holds the database waits for it', async () => {
    using folder = temporaryFolder();
    const { args } = crewConfig(folder.path, { backendUrl: backend.url, processes: 1 });
    const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
    const key = addKey(accounts, 'scale');
    accounts.run('PRAGMA locking_mode = EXCLUSIVE');
    accounts.run('UPDATE accounts SET created_at_ms = 1'); // takes the lock, and keeps it
    const starting = startProcess(args, folder.path);
    expect(await Promise.race([starting.then(() => 'started'), Bun.sleep(700)])).toBeUndefined();
    accounts.run('PRAGMA locking_mode = NORMAL');
    accounts.query('SELECT 1 FROM accounts').get(); // gives it up
    await using gateway = await starting;
    const init = { method: 'POST', body: CALL, headers: { ...JSON_HEADERS, 'x-token': key } };
    expect((await fetch(gateway.url, init)).status).toBe(200);
  });

  test('E3 of several processes, one that cannot start in the outage is tried again while the others serve', async () => {
    await using crew = await startCrew({ backendUrl: backend.url, processes: 2 });
    const key = crew.key('scale');
    await Promise.all(Array.from({ length: 32 }, () => crew.post(key)));
    crew.accounts.run('ALTER TABLE keys RENAME TO hidden');
    process.kill(crew.pidOf(2), 'SIGKILL');
    await until(async () => ((await crew.metric('sluice_gateway_process_restarts_total')) ?? 0) >= 3);
    expect(await crew.metric('sluice_gateway_processes')).toBe(1);
    expect((await crew.post(key)).status).toBe(200);
    crew.accounts.run('ALTER TABLE hidden RENAME TO keys');
    await until(async () => (await crew.metric('sluice_gateway_processes')) === 2);
  });
});

describe('E5 keys change while they are used', () => {
  test('E5 a revoked key stops within a second, and a rotated one works beside its heir until its time', async () => {
    await using gateway = await startAlone();
    gateway.accounts.run("INSERT INTO accounts (name, plan, created_at_ms) VALUES ('payer', 'scale', 0)");
    const keys = createKeys({ store: gateway.accounts, clock: systemClock, random: randomBytes });
    const made = keys.create('payer', 'first');
    if (made.kind !== 'created') throw new Error(made.kind);
    expect(await gateway.status(made.made.key)).toBe(200);
    const rotated = keys.rotate(made.made.id, 1_500);
    if (rotated.kind !== 'rotated') throw new Error(rotated.kind);
    await Bun.sleep(1_000); // the promise is a second
    expect([await gateway.status(made.made.key), await gateway.status(rotated.made.key)]).toEqual([200, 200]);
    await Bun.sleep(Math.max(0, rotated.oldExpiresAtMs - Date.now()));
    expect([await gateway.status(made.made.key), await gateway.status(rotated.made.key)]).toEqual([401, 200]);
    keys.revoke(rotated.made.id);
    await Bun.sleep(1_000);
    expect(await gateway.status(rotated.made.key)).toBe(401);
  });

  test.each([
    ['has', 1_000, [200]],
    ['does not have', 80, [401]],
  ] as const)(
    'E5 of a key that the store %s, %i requests at once make one look-up',
    async (which, times, statuses) => {
      const { through, count } = countingLookUps();
      await using gateway = await startGateway(
        { backends: [{ name: 'a', url: backend.url }] },
        systemClock,
        through,
      );
      const key = gateway.key();
      if (which === 'does not have') gateway.accounts.run('DELETE FROM keys');
      const answers = await Promise.all(Array.from({ length: times }, () => gateway.post(CALL, key)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(statuses));
      expect(count()).toBe(1);
    },
  );
});

test("a key's last use is in the list of keys a moment later, and an unused key has none", async () => {
  await using gateway = await startAlone();
  const [used, unused] = [gateway.key(), gateway.key()];
  const before = Date.now();
  for (let i = 0; i < 50; i++) expect(await gateway.status(used)).toBe(200);
  const listed = async () => {
    const ended = await sluice(gateway.folder, ['key', 'list', '--json', '--config', gateway.config]);
    return objectsOf(ended) as { last4: string; last_used_at: string | null }[]; // as the command line documents it
  };
  const lastUse = async (key: string) =>
    (await listed()).find(({ last4 }) => last4 === key.slice(-4))?.last_used_at;
  const at = await until(() => lastUse(used));
  expect(Date.parse(at)).toBeWithin(before, Date.now() + 1);
  expect(await lastUse(unused)).toBeNull();
});
