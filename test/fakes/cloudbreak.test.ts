import { expect, test } from 'bun:test';
import { startCloudbreak } from './cloudbreak.ts';

const rows = ['{"pubkey":"a"}', '{"pubkey":"b"}', '{"pubkey":"c"}'];
const start = () => startCloudbreak({ rows, failsAfter: undefined, slot: 100 });

function post(url: string, method: string, config: object = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: ['program', config] }),
  });
}

test('the scripted Cloudbreak streams a scan, the id last', async () => {
  await using backend = start();
  const response = await post(backend.url, 'getProgramAccounts');
  expect(response.headers.get('content-length')).toBeNull();
  expect(await response.text()).toBe(`{"jsonrpc":"2.0","result":[${rows.join(',')}],"id":7}`);
});

test('it ends a scan that fails cleanly, in the middle of its JSON', async () => {
  await using backend = start();
  backend.state.failsAfter = 2;
  const response = await post(backend.url, 'getProgramAccounts');
  expect(await response.text()).toBe(`{"jsonrpc":"2.0","result":[${rows[0]},${rows[1]}`);
});

test('it refuses processed and a slot it has not reached, with data null', async () => {
  await using backend = start();
  const error = async (config: object) => (await post(backend.url, 'getSlot', config)).json();
  expect(await error({ commitment: 'processed' })).toMatchObject({ error: { code: -32003, data: null } });
  expect(await error({ minContextSlot: 101 })).toMatchObject({ error: { code: -32000, data: null } });
  expect(await error({ minContextSlot: 100 })).toMatchObject({ result: 100 });
});
