import { describe, expect, test } from 'bun:test';
import { type CallOutcome, createRpcBackend, type Fetch } from '../../../deploys/watch/rpc.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Secret } from '../../../shared/secret.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { type Fault, startChain } from '../../fakes/chain.ts';

const KEY = 'sluice_watcher_key_that_must_not_leak';
const NOBODY = new URL('http://127.0.0.1:1');
const { signal } = new AbortController();

type Given = Partial<Parameters<typeof createRpcBackend>[0] & Parameters<typeof createRpcBackend>[1]>;
const backend = ({ fetch: get = fetch, clock = systemClock, ...at }: Given) =>
  createRpcBackend({ name: 'it', url: NOBODY, key: undefined, ...at }, { fetch: get, clock }).call;

/** The outcome of one call to a chain whose answer is replaced. */
async function outcomeWith(fault: Fault): Promise<CallOutcome> {
  await using chain = startChain();
  chain.fault = fault;
  const url = new URL(`?api-key=${KEY}`, chain.url);
  return await backend({ url, key: new Secret(KEY) })('getBlockTime', [1], signal);
}
const json = (value: unknown, status = 200) => Response.json(value, { status });

test('a call is a JSON-RPC request with the key in x-token, or none, and past the proxy of the environment', async () => {
  await using chain = startChain();
  chain.blockTimes.set(5, 1_700_000_000);
  const before = process.env['http_proxy'];
  process.env['http_proxy'] = NOBODY.href;
  try {
    for (const key of [new Secret(KEY), undefined])
      expect(await backend({ url: chain.url, key })('getBlockTime', [5], signal)).toEqual({
        kind: 'result',
        result: 1_700_000_000,
      });
  } finally {
    if (before === undefined) delete process.env['http_proxy'];
    else process.env['http_proxy'] = before;
  }
  expect(chain.calls.map(({ headers }) => [headers.get('x-token'), headers.get('content-type')])).toEqual([
    [KEY, 'application/json'],
    [null, 'application/json'],
  ]);
});

describe('what is no JSON-RPC answer is a failure with a reason that shows no body and no key', () => {
  const NOT_RPC = 'returned invalid JSON-RPC';
  test.each([
    ['a page of a proxy with 502', () => new Response(`<html>${KEY}`, { status: 502 }), 'returned HTTP 502'],
    ['a redirect, not followed', () => Response.redirect(NOBODY.href), 'returned HTTP 302'],
    ['JSON cut in the middle', () => new Response('{"jsonrpc":"2.0","id":1,"resu'), NOT_RPC],
    ['null', () => json(null), NOT_RPC],
    ['no result', () => json({ jsonrpc: '2.0', id: 1 }), NOT_RPC],
    ["another call's answer", () => json({ jsonrpc: '2.0', id: 2, result: 1 }), NOT_RPC],
    ['an error without a code', () => json({ id: 1, error: KEY }), 'returned an error without a code'],
    ['a refusal for the rate, which is told apart', () => json({}, 429), 'returned HTTP 429'],
  ] as [string, Fault, string][])('%s', async (_, fault, reason) => {
    const outcome = await outcomeWith(fault);
    expect(outcome).toEqual({ kind: 'failed', reason, isOverRate: reason.endsWith('429') });
    expect(JSON.stringify(outcome)).not.toContain(KEY);
  });
});

test('an answer above a megabyte is left after the first bytes too many', async () => {
  let sent = 0;
  const left = Promise.withResolvers<void>();
  const pull = (controller: ReadableStreamDefaultController) =>
    sent++ < 64 ? controller.enqueue(new Uint8Array(65_536)) : controller.close();
  const flood = new ReadableStream({ pull, cancel: () => left.resolve() }, { highWaterMark: 0 });
  const call = backend({ fetch: async () => new Response(flood) });
  expect(await call('getBlockTime', [1], signal)).toMatchObject({
    reason: 'returned more than 1048576 bytes',
  });
  await left.promise;
  expect(sent).toBe(17);
});

test('a backend that is not there is a failure with the code of the refusal', async () => {
  const call = backend({ url: new URL(`${NOBODY.href}${KEY}?k=${KEY}`) });
  expect(await call('getBlockTime', [1], signal)).toMatchObject({
    reason: 'is unreachable (ECONNREFUSED)',
  });
});

test.each<[string, Fetch]>([
  ['hangs', () => new Promise(() => {})],
  [
    'stops in the middle of its body',
    async () => new Response(new ReadableStream({ start: (c) => c.enqueue(new Uint8Array(1)) })),
  ],
])('a backend that %s is given up after 8 s', async (_, get) => {
  const clock = createVirtualClock();
  let outcome: CallOutcome | undefined;
  void backend({ fetch: get, clock })('getBlockTime', [1], signal).then((ended) => (outcome = ended));
  await clock.advance(7_999);
  expect(outcome).toBeUndefined();
  await clock.advance(1);
  expect(outcome).toMatchObject({ kind: 'failed', reason: 'did not respond within 8 s' });
});
