import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { result, type SeenCall, startBackend } from '../fakes/backend.ts';
import { until } from '../started/stack.ts';
import { CALL, type CrewOptions, startCrew } from './gateway-crew.ts';

const PLANS =
  '[plans.prepaid]\nrps = 100000\nburst = 100000\ncredits = 100000\n[plans.tiny]\nrps = 1000\nmax_batch = 1\n';

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

const start = (options: Partial<CrewOptions> = {}) =>
  startCrew({ backendUrl: backend.url, processes: 3, extra: PLANS, ...options });

type Crew = Awaited<ReturnType<typeof start>>;

/** Connections until every process has served one. */
async function serveFromAll(crew: Crew, key: string): Promise<void> {
  await until(async () => {
    await Promise.all(Array.from({ length: 8 }, async () => (await crew.post(key)).text()));
    return crew.charged().size === crew.processes().size;
  });
}

test('all processes serve, and their metrics are one text that adds up', async () => {
  await using crew = await start();
  expect([...crew.processes().keys()].toSorted()).toEqual([1, 2, 3]);
  await serveFromAll(crew, crew.key('prepaid', 1_000));
  const answered = backend.seen.length;
  expect(await crew.metric('sluice_gateway_requests_total{outcome="answered"}')).toBe(answered);
  expect([...crew.charged().values()].reduce((sum, charged) => sum + charged)).toBe(answered);
  expect(await crew.metric('sluice_gateway_processes')).toBe(3);
  expect(await crew.metric('sluice_gateway_backend_in{backend="a"}')).toBe(1);
  for (const slot of [1, 2, 3])
    expect(await crew.metric(`process_resident_memory_bytes{process="${slot}"}`)).toBeGreaterThan(1e7);
  expect(await crew.status()).toMatchObject({
    processes: 3,
    backends: [{ name: 'a', in: true, in_flight: 0, recent_answered: answered, recent_failed: 0 }],
  });
});

test('kill -9 of one under load loses the requests that it had in flight and no other, and its place is filled', async () => {
  await using crew = await start();
  const key = crew.key('prepaid', 1_000);
  const gate = Promise.withResolvers<void>();
  const held = async (seen: SeenCall) => {
    await gate.promise;
    return result(seen, '1');
  };
  backend.script(held);
  const inFlight = Array.from({ length: 24 }, () =>
    crew.post(key).then(
      ({ status }) => status,
      () => 'lost',
    ),
  );
  await until(async () => backend.seen.length === inFlight.length);
  const [[slot, count] = [0, 0]] = [...crew.charged()].toSorted(([, a], [, b]) => b - a);
  expect(count).toBeGreaterThan(0);
  const killed = crew.pidOf(slot);
  process.kill(killed, 'SIGKILL');
  await until(async () => !existsSync(`/proc/${killed}`)); // its supervisor has seen its end, so its sockets are closed
  backend.script((seen) => result(seen, '1'));
  // What comes now is served by the others at once, and by the one in its place when it listens.
  for (let i = 0; i < 20; i++) expect((await crew.post(key)).status).toBe(200);
  gate.resolve();
  const outcomes = await Promise.all(inFlight);
  expect(outcomes.filter((outcome) => outcome === 'lost')).toHaveLength(count);
  expect(outcomes.filter((outcome) => outcome === 200)).toHaveLength(inFlight.length - count);

  await until(async () => (await crew.metric('sluice_gateway_processes')) === 3);
  expect(await crew.metric('sluice_gateway_process_restarts_total')).toBe(1);
  const before = crew.charged().get(slot) ?? 0;
  await until(async () => (await crew.post(key)).ok && (crew.charged().get(slot) ?? 0) > before);
});

test('L17 L19 revocation and a change of plan are in force within a second in every process', async () => {
  await using crew = await start();
  const [revoked, changed] = [crew.key('prepaid', 1_000), crew.key('tiny')];
  await serveFromAll(crew, revoked);
  const statuses = async (key: string, body?: string) => {
    const answers = await Promise.all(Array.from({ length: 24 }, () => crew.post(key, body)));
    return [...new Set(answers.map(({ status }) => status))];
  };
  const batch = `[${CALL},${CALL}]`;
  expect(await statuses(changed, batch)).toEqual([400]);
  crew.accounts.run('UPDATE keys SET revoked_at_ms = 1 WHERE account_id = 1');
  crew.accounts.run("UPDATE accounts SET plan = 'scale' WHERE id = 2");
  await Bun.sleep(1_000); // the promise itself: a second, not until it happens to hold
  expect(await statuses(revoked)).toEqual([401]);
  expect(await statuses(changed, batch)).toEqual([200]);
});
