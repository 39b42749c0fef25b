import { beforeEach, describe, expect, test } from 'bun:test';
import { result, startBackend } from '../fakes/backend.ts';
import { startCloudbreak } from '../fakes/cloudbreak.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';

/** 4 MB: a scan is under way long before it is over. */
const rows = Array.from(
  { length: 100 },
  (_, i) => `{"account":{"data":"${'x'.repeat(40_000)}","rentEpoch":18446744073709551615},"pubkey":"p${i}"}`,
);
const store = startCloudbreak({ rows, failsAfter: undefined, slot: 100 });
const node = startBackend((call) => result(call, '"from the node"'));

const gateway = shared(
  await startGateway({
    backends: [
      { name: 'store', url: store.url, profile: 'cloudbreak' },
      { name: 'node', url: node.url, methods: [], lanes: ['state'] },
    ],
  }),
);
const key = gateway.key();
beforeEach(() => {
  store.state.failsAfter = undefined;
  store.seen.length = node.seen.length = 0;
});

const post = (method: string, config: object) =>
  gateway.post({ jsonrpc: '2.0', id: 7, method, params: ['program', config] }, key);

describe('an account store of the profile cloudbreak', () => {
  test('that ends a scan cleanly in the middle of its JSON cuts the caller off', async () => {
    store.state.failsAfter = 80;
    const read = async () => (await post('getProgramAccounts', {})).text();
    await expect(read()).rejects.toThrow();
  });

  test.each([
    ['processed, which it does not know', { commitment: 'processed' }],
    ['a slot it has not reached', { minContextSlot: 101 }],
  ])('leaves calls at %s to a node', async (_, config) => {
    const response = await post('getSlot', config);
    expect(await response.text()).toContain('"from the node"');
    expect(node.seen).toHaveLength(1);
  });
});
