import { createSolanaRpc, type Address } from '@solana/kit';
import { expect, test } from 'bun:test';
import { addressOf, LOADER_V3, startChain } from './chain.ts';

const program = addressOf('a program');

test("the chain speaks to Solana's own client: slices, contexts, absent accounts and block times", async () => {
  await using chain = startChain();
  chain.deploy(program, 900, addressOf('an authority'));
  chain.blockTimes.set(900, 1_700_000_000);
  const rpc = createSolanaRpc(chain.url.href as `http://${string}`); // the address of this very server
  const { context, value } = await rpc
    .getMultipleAccounts([program, addressOf('nobody') as Address], {
      encoding: 'base64',
      dataSlice: { offset: 0, length: 4 },
    })
    .send();
  expect(context.slot).toBe(1_000n);
  expect(value[0]?.owner).toBe(LOADER_V3);
  expect(value[0]?.data[0]).toBe(Buffer.from([2, 0, 0, 0]).toString('base64') as never);
  expect(value[1]).toBeNull();
  expect(await rpc.getBlockTime(900n).send()).toBe(1_700_000_000n as never);
});

test('it refuses a slot it has not reached, and answers a fault instead of itself', async () => {
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
