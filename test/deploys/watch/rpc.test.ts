import { describe, expect, test } from 'bun:test';
import { type CallOutcome, createRpcBackend } from '../../../deploys/watch/rpc.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Secret } from '../../../shared/secret.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { type Fault, startChain } from '../../fakes/chain.ts';

const KEY = 'sluice_watcher_key_that_must_not_leak';
const real = { fetch, clock: systemClock };
const { signal } = new AbortController();

/** The outcome of one call to a chain whose answer is replaced. */
async function outcomeWith(fault: Fault): Promise<CallOutcome> {
  await using chain = startChain();
  chain.fault = fault;
  const url = new URL(`?api-key=${KEY}`, chain.url);
  return await createRpcBackend({ name: 'it', url, key: new Secret(KEY) }, real).call(
    'getBlockTime',
    [1],
    signal,
  );
}
const json = (value: unknown, status = 200) => Response.json(value, { status });

test('a call is a JSON-RPC request with the key in x-token, and its result comes back', async () => {
  await using chain = startChain();
  chain.blockTimes.set(5, 1_700_000_000);
  const { call } = createRpcBackend({ name: 'it', url: chain.url, key: new Secret(KEY) }, real);
  expect(await call('getBlockTime', [5], signal)).toEqual({ kind: 'result', result: 1_700_000_000 });
  expect(chain.calls[0]?.headers.get('x-token')).toBe(KEY);
  expect(chain.calls[0]?.headers.get('content-type')).toBe('application/json');
});

test('without a key no x-token is sent', async () => {
  await using chain = startChain();
  await createRpcBackend({ name: 'it', url: chain.url, key: undefined }, real).call(
    'getBlockTime',
    [5],
    signal,
  );
  expect(chain.calls[0]?.headers.has('x-token')).toBe(false);
});

test('a proxy in the environment is not used', async () => {
  await using chain = startChain();
  chain.blockTimes.set(5, 1);
  const before = process.env['http_proxy'];
  process.env['http_proxy'] = 'http://127.0.0.1:1';
  try {
    const url = new URL(chain.url);
    const { call } = createRpcBackend({ name: 'it', url, key: undefined }, real);
    expect(await call('getBlockTime', [5], signal)).toEqual({ kind: 'result', result: 1 });
  } finally {
    if (before === undefined) delete process.env['http_proxy'];
    else process.env['http_proxy'] = before;
  }
});

test("the backend's own error comes back as its code", async () => {
  const fault = () => json({ jsonrpc: '2.0', id: 1, error: { code: -32009, message: KEY } });
  expect(await outcomeWith(fault)).toEqual({ kind: 'error', code: -32009 });
});

describe('what is no JSON-RPC answer is a failure with a reason that shows no body and no key', () => {
  test.each([
    ['a page of a proxy with 502', () => new Response(`<html>${KEY}`, { status: 502 }), 'answered HTTP 502'],
    [
      'a redirect, which is not followed',
      () => Response.redirect('http://127.0.0.1:1/'),
      'answered HTTP 302',
    ],
    ['a refused key', () => json({ error: KEY }, 401), 'answered HTTP 401'],
    ['HTML with 200', () => new Response('<html>'), 'answered something that is not JSON-RPC'],
    ['nothing', () => new Response(''), 'answered something that is not JSON-RPC'],
    [
      'JSON cut in the middle',
      () => new Response('{"jsonrpc":"2.0","id":1,"resu'),
      'answered something that is not JSON-RPC',
    ],
    ['null', () => json(null), 'answered something that is not JSON-RPC'],
    ['no result', () => json({ jsonrpc: '2.0', id: 1 }), 'answered something that is not JSON-RPC'],
    [
      "another call's answer",
      () => json({ jsonrpc: '2.0', id: 2, result: 1 }),
      'answered something that is not JSON-RPC',
    ],
    ['an error without a code', () => json({ id: 1, error: KEY }), 'answered an error without a code'],
  ] as [string, Fault, string][])('%s', async (_, fault, reason) => {
    const outcome = await outcomeWith(fault);
    expect(outcome).toEqual({ kind: 'failed', reason, isOverRate: false });
    expect(JSON.stringify(outcome)).not.toContain(KEY);
  });
});

test('a refusal for the rate is told apart', async () => {
  expect(await outcomeWith(() => json({}, 429))).toMatchObject({ kind: 'failed', isOverRate: true });
});

test('an answer above a megabyte is left after the first bytes too many', async () => {
  let sent = 0;
  const flood = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          sent += 65_536;
          controller.enqueue(new Uint8Array(65_536));
        },
      }),
    );
  expect(await outcomeWith(flood)).toMatchObject({ reason: 'answered more than 1048576 bytes' });
  expect(sent).toBeLessThan(16_777_216);
});

test('a backend that is not there is a failure with the code of the refusal', async () => {
  const url = new URL(`http://127.0.0.1:1/${KEY}?k=${KEY}`);
  const { call } = createRpcBackend({ name: 'it', url, key: undefined }, real);
  expect(await call('getBlockTime', [1], signal)).toMatchObject({
    reason: 'cannot be reached (ECONNREFUSED)',
  });
});

test.each([
  [7_999, undefined],
  [8_000, 'gave no answer within 8 s'],
])('a backend that hangs is given up after 8 s: at %i ms the reason is %s', async (ms, reason) => {
  const clock = createVirtualClock();
  const hanging = () => new Promise<Response>(() => {});
  const { call } = createRpcBackend(
    { name: 'it', url: new URL('http://127.0.0.1:1'), key: undefined },
    { fetch: hanging, clock },
  );
  let outcome: CallOutcome | undefined;
  void call('getBlockTime', [1], signal).then((ended) => (outcome = ended));
  await clock.advance(ms);
  expect(outcome?.kind === 'failed' ? outcome.reason : undefined).toBe(reason);
});

test('a body that stops in the middle is given up like a silent backend', async () => {
  const clock = createVirtualClock();
  const stuck = async () => new Response(new ReadableStream({ start: (c) => c.enqueue(new Uint8Array(1)) }));
  const { call } = createRpcBackend(
    { name: 'it', url: new URL('http://127.0.0.1:1'), key: undefined },
    { fetch: stuck, clock },
  );
  const outcome = call('getBlockTime', [1], signal);
  await clock.advance(8_000);
  expect(await outcome).toMatchObject({ kind: 'failed', reason: 'gave no answer within 8 s' });
});

test('an aborted call ends at once and its socket is let go', async () => {
  const gone = Promise.withResolvers<void>();
  const server = Bun.serve({
    port: 0,
    fetch: (request) => {
      request.signal.addEventListener('abort', () => gone.resolve());
      over.abort();
      return new Promise<Response>(() => {});
    },
  });
  const over = new AbortController();
  const { call } = createRpcBackend({ name: 'it', url: server.url, key: undefined }, real);
  expect(await call('getBlockTime', [1], over.signal)).toMatchObject({ reason: 'was given up' });
  await gone.promise;
  await server.stop(true);
});
