import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createHttpClient, type HttpClient } from '../../../gateway/upstream/http-client.ts';
import { createVirtualClock } from '../../gateway/virtual-clock.ts';

const REQUEST = {
  body: Buffer.from('{}'),
  acceptEncoding: 'identity',
  dueMs: 60_000,
  kind: 'light',
} as const;

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

function clientOf(protocol: 'http' | 'https'): HttpClient {
  const url = new URL(`${protocol}://127.0.0.1:${silent.port}/`);
  return createHttpClient({ url, headers: new Map(), clock: virtual.clock, idleMs: 60_000 });
}

test('a backend that takes the connection and never shakes hands is left after three seconds', async () => {
  const outcome = clientOf('https').send(REQUEST, caller.signal);
  await accepted.promise;
  virtual.advance(2_999);
  expect(await Promise.race([outcome, gone.promise, Bun.sleep(20)])).toBeUndefined();
  virtual.advance(1);
  expect(await outcome).toEqual({ kind: 'unsent', reason: 'it did not shake hands in time' });
  await gone.promise;
});

test('a caller that leaves while a handshake is under way ends it, and nothing waits any more', async () => {
  const outcome = clientOf('https').send(REQUEST, caller.signal);
  await accepted.promise;
  caller.abort();
  expect(await outcome).toMatchObject({ kind: 'unsent' });
  await gone.promise;
  expect(virtual.sleeping()).toBe(0);
});

test.each(['http', 'https'] as const)(
  'a caller that leaves before its connection over %s is open leaves none behind',
  async (protocol) => {
    const outcome = clientOf(protocol).send(REQUEST, caller.signal);
    caller.abort();
    expect(await outcome).toEqual({ kind: 'unsent', reason: 'it did not accept a connection in time' });
    await gone.promise;
  },
);

test('a client that is closed while it connects keeps no connection', async () => {
  const client = clientOf('http');
  const outcome = client.send(REQUEST, caller.signal);
  client.close();
  expect(await outcome).toMatchObject({ kind: 'unsent' });
  await gone.promise;
});
