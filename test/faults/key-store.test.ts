import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { until } from '../started/stack.ts';
import { startCrew, startAlone } from '../started/crew.ts';
import { errorText } from './pair.ts';

// What takes seconds here takes longer beside other work.
setDefaultTimeout(30_000);

const CHECK_UNAVAILABLE = `503 ${errorText(-503, 'Key check unavailable', 1)}`;

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

describe('E3 when keys cannot be read', () => {
  test('E3 known keys go on, others get 503 and never 401, and all is well again without a restart (§2.5 503)', async () => {
    await using gateway = await startAlone(backend.url);
    const [known, unseen] = [gateway.key(), gateway.key()];
    expect(await gateway.statusOf(known)).toBe(200);
    gateway.accounts.run('ALTER TABLE keys RENAME TO hidden');
    gateway.accounts.run('ALTER TABLE revision RENAME TO hidden_revision');
    for (let i = 0; i < 4; i++) {
      const refused = await gateway.post(unseen);
      expect(`${refused.status} ${await refused.text()}`).toBe(CHECK_UNAVAILABLE);
      expect(refused.headers.get('retry-after')).toBe('1');
      expect(await gateway.statusOf(known)).toBe(200);
      await Bun.sleep(150); // the outage lasts over several looks at the revision
    }
    gateway.accounts.run('ALTER TABLE hidden_revision RENAME TO revision');
    gateway.accounts.run('ALTER TABLE hidden RENAME TO keys');
    expect([await gateway.statusOf(unseen), await gateway.statusOf(known)]).toEqual([200, 200]);
  });

  test('E3 known keys go on also when a change was noticed just before, which every key is read again for', async () => {
    await using gateway = await startAlone(backend.url);
    const known = gateway.key();
    expect(await gateway.statusOf(known)).toBe(200);
    gateway.accounts.transaction(() => {
      gateway.accounts.run("UPDATE accounts SET name = 'another'");
      gateway.accounts.run('ALTER TABLE keys RENAME TO hidden');
    })();
    await Bun.sleep(600); // twice the time in which a change is noticed
    expect(await gateway.statusOf(known)).toBe(200);
    gateway.accounts.run('ALTER TABLE hidden RENAME TO keys');
    expect(await gateway.statusOf(known)).toBe(200);
  });

  test('E3 no request waits while another process is writing for long, though uses are to be written', async () => {
    await using gateway = await startAlone(backend.url);
    const keys = [gateway.key(), gateway.key()];
    gateway.accounts.run('BEGIN IMMEDIATE');
    const untilMs = performance.now() + 1_500;
    let longestMs = 0;
    for (let i = 0; performance.now() < untilMs; i++) {
      const sinceMs = performance.now();
      expect(await gateway.statusOf(keys[i % 2] ?? '')).toBe(200);
      longestMs = Math.max(longestMs, performance.now() - sinceMs);
      await Bun.sleep(5); // below the plan's rate
    }
    gateway.accounts.run('ROLLBACK');
    expect(longestMs).toBeLessThan(750);
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
