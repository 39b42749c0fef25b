import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { result, type SeenCall, startBackend } from '../fakes/backend.ts';
import { hasEnded } from '../started/process.ts';
import { until } from '../started/stack.ts';
import { CALL, type CrewOptions, startCrew } from '../started/crew.ts';
import { atRest } from './gateway-process.ts';

const PLANS =
  '[plans.prepaid]\nrps = 100000\nburst = 100000\ncredits = 100000\n[plans.tiny]\nrps = 1000\nmax_batch = 1\n' +
  // A rate that is never reached, also by one process that knows nothing yet.
  '[plans.ample]\nrps = 1_000_000\nburst = 1_000_000\n';

setDefaultTimeout(60_000);

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

test('kill -9 of one under load loses the requests that it had in flight and no other, also while its place is filled', async () => {
  await using crew = await start({ extra: `${PLANS}[deadlines]\nlight = 60\n` });
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
  await until(async () => (await crew.metric('sluice_gateway_processes')) === 3);
  gate.resolve();
  const outcomes = await Promise.all(inFlight);
  expect(outcomes.filter((outcome) => outcome === 'lost')).toHaveLength(count);
  expect(outcomes.filter((outcome) => outcome === 200)).toHaveLength(inFlight.length - count);
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

test('G15 processes share the connections of a backend, and their status has the number of the host', async () => {
  const gate = Promise.withResolvers<void>();
  backend.script(async (seen) => {
    await gate.promise;
    return result(seen, '7');
  });
  await using crew = await start({ processes: 2, extra: `max_connections = 5\n${PLANS}` });
  const key = crew.key('ample');
  // None is the same as another; each process has some of these connections.
  const bodies = Array.from({ length: 24 }, (_, i) => CALL.replace('}', `,"params":[${i}]}`));
  const answers = bodies.map((body) => crew.post(key, body));
  await until(async () => backend.seen.length === 4);
  expect(await atRest(() => backend.seen.length, 300)).toBe(4);
  expect(await crew.status()).toMatchObject({
    processes: 2,
    backends: [{ in_flight: 4, max_connections: 5 }],
  });
  gate.resolve();
  for (const answer of answers) expect((await answer).status).toBe(200);
});

test('I1 a drain sends pooled callers away without a reset: every answer that comes is whole, and the last of its connection says so', async () => {
  await using crew = await start();
  const key = crew.key('scale');
  const enough = Promise.withResolvers<void>();
  let answers = 0;
  const caller = async () => {
    for (;;) {
      const response = await crew.post(key, CALL, { keepalive: true });
      await response.text();
      if (++answers === 500) enough.resolve();
      if (response.headers.get('connection') === 'close') return response.status;
      await Bun.sleep(20); // a pooled connection rests between two requests
    }
  };
  const callers = Array.from({ length: 32 }, caller);
  await enough.promise;
  crew.kill('SIGTERM');
  expect(new Set(await Promise.all(callers))).toEqual(new Set([200]));
  expect(await crew.exited).toBe(0);
});

test('I1 a drain says so at /health, and lets an answer under way end', async () => {
  await using crew = await start({ processes: 2 });
  const key = crew.key('scale');
  const gate = Promise.withResolvers<void>();
  backend.script(async (seen) => {
    await gate.promise;
    return result(seen, '1');
  });
  const health = async () => {
    const response = await fetch(new URL('/health', crew.url), { keepalive: false });
    return `${response.status} ${await response.text()}`;
  };
  await until(async () => (await health()) === '200 ok\n');
  const underWay = crew.post(key);
  await until(async () => backend.seen.length === 1);
  crew.kill('SIGTERM');
  await until(async () => (await health()) === '503 draining\n');
  await until(() =>
    health().then(
      () => false,
      () => true,
    ),
  );
  gate.resolve();
  expect((await underWay).status).toBe(200);
  expect(await crew.exited).toBe(0);
});

test('I1 a drain follows when the supervisor is killed: no process stays behind', async () => {
  await using crew = await start({ processes: 2 });
  const pids = [...crew.processes().values()];
  crew.kill('SIGKILL');
  await until(async () => pids.every(hasEnded));
});
