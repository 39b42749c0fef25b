import { describe, expect, test } from 'bun:test';
import { transferWire } from '../../localnet/protocol/keypair.ts';
import { GENESIS_SLOT } from '../../localnet/genesis/accounts.ts';
import type { Json } from '../../localnet/json/value.ts';
import { addressNumber, alice, base64, bob, list, object, startChain, RICH } from './harness.ts';
import { builtWire, SYSTEM, transferData } from './wire.ts';

const processed = { commitment: 'processed', encoding: 'base64' };

async function startRich() {
  const net = await startChain({ accounts: RICH });
  net.advance(10);
  const simulate = async (wire: Uint8Array, config: Record<string, Json> = {}) =>
    object(await net.valueOf('simulateTransaction', base64(wire), { ...processed, ...config }));
  return { ...net, simulate };
}

describe('simulateTransaction', () => {
  test('shows what a transaction would do and changes nothing', async () => {
    using net = await startRich();
    expect(await net.simulate(transferWire(alice, bob.address, 1_000_000n, net.blockhash()))).toEqual({
      accounts: null,
      err: null,
      fee: 5_000n,
      innerInstructions: null,
      loadedAccountsDataSize: null,
      loadedAddresses: { readonly: [], writable: [] },
      logs: [`Program ${SYSTEM} invoke [1]`, `Program ${SYSTEM} success`],
      postBalances: [9_998_995_000n, 1_000_000n, 1n],
      postTokenBalances: [],
      preBalances: [10_000_000_000n, 0n, 1n],
      preTokenBalances: [],
      replacementBlockhash: null,
      returnData: null,
      unitsConsumed: 150n,
    });
    expect(await net.balance(bob.address)).toBe(0n);
    expect(await net.result('getTransactionCount', { commitment: 'processed' })).toBe(0n);
  });

  test('does not verify signatures without sigVerify', async () => {
    using net = await startRich();
    const wire = transferWire(alice, bob.address, 1_000_000n, net.blockhash());
    wire.fill(9, 1, 65);
    expect(await net.simulate(wire)).toMatchObject({ err: null });
    expect(
      await net.refusal('simulateTransaction', base64(wire), { ...processed, sigVerify: true }),
    ).toMatchObject({ code: -32003n });
    // And a real send still does, afterwards.
    expect(await net.preflightError(wire)).toMatchObject({
      code: -32003n,
    });
  });

  test('replaces an unknown blockhash by a newer one', async () => {
    using net = await startRich();
    const wire = transferWire(alice, bob.address, 1_000_000n, addressNumber(4));
    expect(await net.simulate(wire)).toMatchObject({
      err: 'BlockhashNotFound',
      logs: [],
      unitsConsumed: 0n,
    });
    expect(await net.simulate(wire, { replaceRecentBlockhash: true })).toMatchObject({
      err: null,
      replacementBlockhash: { blockhash: net.blockhash(), lastValidBlockHeight: GENESIS_SLOT + 160n },
    });
  });

  test('shows the accounts in its configuration as they would be', async () => {
    using net = await startRich();
    const wire = transferWire(alice, bob.address, 1_000_000n, net.blockhash());
    const { accounts } = await net.simulate(wire, {
      accounts: { encoding: 'base64', addresses: [bob.address, addressNumber(7), alice.address] },
    });
    expect(accounts).toEqual([
      {
        data: ['', 'base64'],
        executable: false,
        lamports: 1_000_000n,
        owner: SYSTEM,
        rentEpoch: 18446744073709551615n,
        space: 0n,
      },
      null,
      expect.objectContaining({ lamports: 9_998_995_000n }),
    ]);
  });

  test('shows a failure with its logs, its fee and no accounts', async () => {
    using net = await startRich();
    const wire = transferWire(alice, bob.address, 10n ** 15n, net.blockhash());
    const result = await net.simulate(wire, { accounts: { encoding: 'base64', addresses: [bob.address] } });
    expect(result).toMatchObject({
      err: { InstructionError: [0n, { Custom: 1n }] },
      accounts: [null],
      postBalances: [9_999_995_000n, 0n, 1n],
    });
    expect(list(result['logs'])).not.toHaveLength(0);
  });

  test('runs at the state of its commitment and puts everything back', async () => {
    using net = await startRich();
    await net.transfer(alice, bob.address, 9_000_000_000n);
    const wire = builtWire(alice, net.blockhash('finalized'), [
      { program: SYSTEM, accounts: [alice.address, addressNumber(5)], data: transferData(5_000_000_000n) },
    ]);
    expect(await net.simulate(wire, { commitment: 'finalized' })).toMatchObject({ err: null });
    expect(await net.simulate(wire)).toMatchObject({ err: { InstructionError: [0n, { Custom: 1n }] } });
    expect(await net.balance(bob.address)).toBe(9_000_000_000n);
    expect(await net.balance(addressNumber(5))).toBe(0n);
  });
});
