import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { result, type SeenCall, startBackend } from '../fakes/backend.ts';
import { postText } from '../fakes/raw-caller.ts';
import { hasEnded } from '../started/process.ts';
import { until } from '../started/stack.ts';
import { CALL, type CrewOptions, startCrew } from './gateway-crew.ts';
import { atRest } from './gateway-process.ts';

const PLANS =
  '[plans.prepaid]\nrps = 100000\nburst = 100000\ncredits = 100000\n[plans.tiny]\nrps = 1000\nmax_batch = 1\n' +
  // A rate that is never reached, also by one process that knows nothing yet.
  '[plans.ample]\nrps = 1_000_000\nburst = 1_000_000\n';

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

/** The callers' ports of the connections that a process has accepted on `port` of 127.0.0.1 (Linux). */
function callerPortsOf(pid: number, port: number): ReadonlySet<number> {
  const inodes = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`)) ?? [];
    if (inode !== undefined) inodes.add(inode);
  }
  const callers = new Set<number>();
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1)) {
    const [, local = '', remote = '', , , , , , , inode = ''] = line.trim().split(/\s+/);
    if (portIn(local) === port && portIn(remote) !== 0 && inodes.has(inode)) callers.add(portIn(remote));
  }
  return callers;
}

/** Where a link leads; nowhere when it has just gone. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function portIn(address: string): number {
  return Number.parseInt(address.split(':')[1] ?? '0', 16);
}

/** A kept connection that asks again as soon as it is answered; `ended` once it is closed. */
type Caller = { port: number; answered: number; other: string[]; ended: boolean; stop: boolean };

async function converse(url: URL, key: string): Promise<Caller> {
  const caller: Caller = { port: 0, answered: 0, other: [], ended: false, stop: false };
  const request = postText(CALL, key);
  let text = '';
  const socket = await Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: {
      data(self, bytes) {
        text += bytes.toString('latin1');
        if (!text.includes('"id":1}')) return;
        if (text.startsWith('HTTP/1.1 200')) caller.answered++;
        else caller.other.push(text);
        text = '';
        if (caller.stop) self.end();
        else self.write(request);
      },
      close: () => void (caller.ended = true),
      error: () => void (caller.ended = true),
    },
  });
  caller.port = socket.localPort;
  socket.write(request);
  return caller;
}

test('while a killed process is replaced, no request on a connection to another fails', async () => {
  await using crew = await start();
  const key = crew.key('ample');
  const callers = await Promise.all(Array.from({ length: 24 }, () => converse(crew.url, key)));
  await until(async () => callers.every(({ answered }) => answered > 0));
  const portsOf = (slot: number) => callerPortsOf(crew.pidOf(slot), Number(crew.url.port));
  expect(callers.every(({ port }) => [1, 2, 3].some((slot) => portsOf(slot).has(port)))).toBe(true);

  // Two deaths, so that the second falls into the wake of the first.
  for (const slot of [2, 3]) {
    const doomed = portsOf(slot);
    const before = crew.pidOf(slot);
    process.kill(before, 'SIGKILL');
    await until(async () => callers.filter(({ port }) => doomed.has(port)).every(({ ended }) => ended));
    await until(async () => ![undefined, before].includes(crew.processes().get(slot)));
    await until(async () => (await crew.metric('sluice_gateway_processes')) === 3);
    for (const caller of callers) if (doomed.has(caller.port)) caller.port = 0;
    const living = callers.filter(({ port }) => port !== 0);
    const counts = living.map(({ answered }) => answered);
    await until(async () => living.every(({ answered }, i) => answered > (counts[i] ?? 0)));
    expect(living.filter(({ ended }) => ended)).toEqual([]);
  }
  expect(callers.flatMap(({ other }) => other)).toEqual([]);
  for (const caller of callers) caller.stop = true;
  await until(async () => callers.every(({ ended }) => ended));
}, 30_000);

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
}, 20_000);

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
  expect(await health()).toBe('200 ok\n');
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
