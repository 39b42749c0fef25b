import { createSolanaRpc } from '@solana/kit';
import { expect, test } from 'bun:test';
import { addressOf, startChain } from './chain.ts';

const program = addressOf('a program');

test('the chain refuses a slot it has not reached, and answers a fault instead of itself', async () => {
  await using chain = startChain();
  const rpc = createSolanaRpc(chain.url.href as `http://${string}`); // the address of this very server
  const read = rpc.getMultipleAccounts([program], {
    encoding: 'base64',
    dataSlice: { offset: 0, length: 4 },
    minContextSlot: 1_001n,
  });
  await expect(read.send()).rejects.toThrow('Minimum context slot');
  chain.fault = () => new Response('<html>', { status: 502 });
  await expect(rpc.getBlockTime(1n).send()).rejects.toThrow('502');
  expect(chain.calls.map(({ method }) => method)).toEqual(['getMultipleAccounts', 'getBlockTime']);
});
