import { expect, test } from 'bun:test';
import { result, startBackend } from '../fakes/backend.ts';
import { until } from '../started/stack.ts';
import { callerPortsOf } from './connections-of.ts';
import { CALL, startCrew } from './gateway-crew.ts';
import { atRest } from './gateway-process.ts';

/** A kept connection that asks again as soon as it is answered; `ended` once it is closed. */
type Caller = { port: number; answered: number; other: string[]; ended: boolean; stop: boolean };

async function converse(url: URL, key: string): Promise<Caller> {
  const caller: Caller = { port: 0, answered: 0, other: [], ended: false, stop: false };
  const request = `POST / HTTP/1.1\r\nhost: ${url.host}\r\nx-token: ${key}\r\ncontent-type: application/json\r\ncontent-length: ${CALL.length}\r\n\r\n${CALL}`;
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
  await using backend = startBackend();
  // A rate that is never reached, also by one process that knows nothing yet.
  const extra = '[plans.ample]\nrps = 1_000_000\nburst = 1_000_000\n';
  await using crew = await startCrew({ backendUrl: backend.url, processes: 3, extra });
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
  await using backend = startBackend(async (seen) => {
    await gate.promise;
    return result(seen, '7');
  });
  const extra = 'max_connections = 5\n[plans.ample]\nrps = 1_000_000\nburst = 1_000_000\n';
  await using crew = await startCrew({ backendUrl: backend.url, processes: 2, extra });
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
