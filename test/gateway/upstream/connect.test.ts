import { afterEach, beforeEach, expect, test } from 'bun:test';
import type { HttpClient } from '../../../gateway/upstream/http-client.ts';
import { LEFT_OUT } from '../../../gateway/http/stream-body.ts';
import type { NoReply } from '../../../gateway/upstream/http-connection.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { clientOf, REQUEST } from './of.ts';

/** Takes connections and never says a word, so that no TLS handshake with it ends. */
let silent: Bun.TCPSocketListener;
let accepted: PromiseWithResolvers<void>;
let gone: PromiseWithResolvers<void>;
let virtual: ReturnType<typeof createVirtualClock>;
let caller: AbortController;
beforeEach(() => {
  accepted = Promise.withResolvers();
  gone = Promise.withResolvers();
  virtual = createVirtualClock();
  caller = new AbortController();
  silent = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: () => accepted.resolve(), data: () => undefined, close: () => gone.resolve() },
  });
});
afterEach(() => silent.stop(true));

const clientBy = (protocol: 'http' | 'https') =>
  clientOf(`${protocol}://127.0.0.1:${silent.port}/`, virtual.clock);

test('a backend that takes the connection and never shakes hands is left after three seconds', async () => {
  const outcome = clientBy('https').send(REQUEST, caller.signal);
  await accepted.promise;
  virtual.advance(2_999);
  expect(await Promise.race([outcome, gone.promise, Bun.sleep(20)])).toBeUndefined();
  virtual.advance(1);
  expect(await outcome).toEqual({ kind: 'unsent', reason: 'it did not shake hands in time' });
  await gone.promise;
});

test.each(['http', 'https'] as const)(
  'a caller that leaves before its connection over %s is open leaves none behind',
  async (protocol) => {
    const outcome = clientBy(protocol).send(REQUEST, caller.signal);
    caller.abort();
    expect(await outcome).toEqual({ kind: 'unsent', reason: 'it did not accept a connection in time' });
    await gone.promise;
  },
);

test('a client that is closed while it connects keeps no connection', async () => {
  const client = clientBy('http');
  const outcome = client.send(REQUEST, caller.signal);
  client.close();
  expect(await outcome).toMatchObject({ kind: 'unsent' });
  await gone.promise;
});

/** Sends a call on the straight way while no connection is open; gives what comes of it. */
function started(client: HttpClient, dueMs: number, traits: { hasOther?(): boolean }) {
  const outcome = Promise.withResolvers<unknown>();
  const message = Buffer.concat([client.head, Buffer.from('2\r\n\r\n{}')]);
  const nowMs = virtual.clock.monotonic();
  client.start(message, message.length, nowMs, nowMs + dueMs, { ...traits, onOutcome: outcome.resolve });
  return outcome.promise;
}

test('on the straight way too a connection is waited for no longer than the call is', async () => {
  const outcome = started(clientBy('https'), 1_000, {});
  await accepted.promise;
  virtual.advance(999);
  expect(await Promise.race([outcome, Bun.sleep(20)])).toBeUndefined();
  virtual.advance(1);
  expect(await outcome).toEqual({ kind: 'unsent', reason: 'it did not shake hands in time' });
  await gone.promise;
});

test('calls whose connection is not open yet are given up as those that are sent: a send never', async () => {
  const client = clientBy('https');
  const read = started(client, 10_000, { hasOther: () => true });
  const alone = started(client, 10_000, {});
  const aloneScan = client.send({ ...REQUEST, kind: 'scan' }, caller.signal);
  const scan = client.send({ ...REQUEST, kind: 'scan', hasOther: () => true }, caller.signal);
  const send = client.send({ ...REQUEST, kind: 'write', hasOther: () => true }, caller.signal);
  await accepted.promise;
  const left: NoReply = { kind: 'unsent', reason: LEFT_OUT };
  client.abandon('reads');
  expect([await read, await Promise.race([alone, aloneScan, scan, send, Bun.sleep(20)])]).toEqual([
    left,
    undefined,
  ]);
  client.abandon('scans');
  expect([await scan, await Promise.race([alone, aloneScan, send, Bun.sleep(20)])]).toEqual([
    left,
    undefined,
  ]);
  client.abandon('hung');
  expect([await alone, await aloneScan, await Promise.race([send, Bun.sleep(20)])]).toEqual([
    left,
    left,
    undefined,
  ]);
  caller.abort();
  expect(await send).toMatchObject({ kind: 'unsent' });
});
