import { expect, test } from 'bun:test';
import { plain, startRawBackend } from '../fakes/raw-backend.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

const SLOT = 368_000_000;
const call = (method: string) => `{"jsonrpc":"2.0","id":1,"method":"${method}"}`;
const withContext = (value: string) =>
  `{"jsonrpc":"2.0","result":{"context":{"slot":${SLOT}},"value":${value}},"id":1}`;

const backend = shared(startRawBackend(({ send }) => send(plain(withContext('7')))));
const rows = { gateway: { tell_backend: true }, backends: [{ name: 'agave-1', url: backend.url }] };
const gateway = shared(await startGateway(rows));
const key = gateway.key('scale');

const told = ({ headers }: Response) => [headers.get('x-sluice-backend'), headers.get('x-sluice-slot')];

test('an answer says which backend gave it and at which slot, short, long and shared (§2.2.6)', async () => {
  const reads = await Promise.all([1, 2, 3].map(() => gateway.post(call('getBalance'), key)));
  expect(reads.map(told)).toEqual([1, 2, 3].map(() => ['agave-1', String(SLOT)]));
  backend.script(({ send }) => send(plain(withContext(`"${'A'.repeat(100_000)}"`))));
  expect(told(await gateway.post(call('getProgramAccounts'), key))).toEqual(['agave-1', String(SLOT)]);
});

test('an answer without a slot says its backend alone, also when it comes from memory', async () => {
  backend.script(({ send }) => send(plain('{"jsonrpc":"2.0","result":"5eykt","id":1}')));
  for (const _ of [1, 2])
    expect(told(await gateway.post(call('getGenesisHash'), key))).toEqual(['agave-1', null]);
});

test('what the gateway says itself, and a batch, name no backend (§2.2.6)', async () => {
  expect(told(await gateway.post(call('getHealth'), key))).toEqual([null, null]);
  expect(told(await gateway.post(call('slotSubscribe'), key))).toEqual([null, null]);
  expect(told(await gateway.post(`[${call('getBalance')}]`, key))).toEqual([null, null]);
});

test('pages of any origin may read both', async () => {
  const answer = await gateway.post(call('getBalance'), key, { headers: { origin: 'https://app.example' } });
  expect(answer.headers.get('access-control-expose-headers')).toContain('x-sluice-backend, x-sluice-slot');
});

test('a name that tells where a backend is becomes its number, and nothing is told by default', async () => {
  backend.script(({ send }) => send(plain(withContext('7'))));
  for (const [name, tell_backend, expected] of [
    ['10.0.0.1:8899', true, '1'],
    ['ip-10-0-0-1', true, '1'],
    ['node.internal', true, '1'],
    ['frankfurt_2', true, 'frankfurt_2'],
    ['frankfurt_2', false, null],
  ] as const) {
    await using own = await startGateway({
      gateway: { tell_backend },
      backends: [{ name, url: backend.url }],
    });
    const [backendSaid, slot] = told(await own.post(call('getBalance'), own.key()));
    expect([backendSaid, slot]).toEqual([expected, tell_backend ? String(SLOT) : null]);
  }
});
