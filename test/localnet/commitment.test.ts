import { describe, expect, test } from 'bun:test';
import { GENESIS_SLOT } from '../../localnet/genesis/accounts.ts';
import { SYSTEM_PROGRAM } from '../../localnet/protocol/address.ts';
import { transferWire } from '../../localnet/protocol/keypair.ts';
import {
  addressNumber,
  alice,
  bob,
  list,
  object,
  ROOTED_LAG,
  startChain,
  systemAccount,
  RICH,
  base64,
} from './harness.ts';

const processed = { commitment: 'processed' };
const confirmed = { commitment: 'confirmed' };
const finalized = { commitment: 'finalized' };
describe('slots by commitment', () => {
  test('processed is the slot in progress, confirmed the one before, finalized the lag behind', async () => {
    using net = await startChain();
    expect(await net.result('getSlot', finalized)).toBe(GENESIS_SLOT - 1n);
    net.advance(10);
    expect(await net.result('getSlot', processed)).toBe(GENESIS_SLOT + 10n);
    expect(await net.result('getSlot', confirmed)).toBe(GENESIS_SLOT + 9n);
    expect(await net.result('getSlot', finalized)).toBe(GENESIS_SLOT + 10n - BigInt(ROOTED_LAG));
  });

  test.each([[{}], [{ commitment: 'finalised' }], [{ commitment: 'max' }], [{ commitment: 7n }]])(
    'the commitment %p is finalized, because Agave does not refuse a misspelt one',
    async (config) => {
      using net = await startChain();
      net.advance(10);
      expect(await net.result('getSlot', config)).toBe(await net.result('getSlot', finalized));
    },
  );

  test('a minimum context slot that a commitment has not reached is -32016 with the slot it has', async () => {
    using net = await startChain();
    net.advance(10);
    const tip = GENESIS_SLOT + 10n;
    expect(await net.result('getSlot', { ...processed, minContextSlot: tip })).toBe(tip);
    expect(await net.refusal('getSlot', { ...processed, minContextSlot: tip + 1n })).toEqual({
      code: -32016n,
      message: 'Minimum context slot has not been reached',
      data: { contextSlot: tip },
    });
    expect(await net.refusal('getBalance', alice.address, { minContextSlot: tip })).toMatchObject({
      data: { contextSlot: tip - BigInt(ROOTED_LAG) },
    });
  });
});

describe('an account is read as of its commitment', () => {
  test('a transfer and its status show at processed at once, at confirmed a slot later, at finalized after the lag', async () => {
    using net = await startChain({ accounts: RICH });
    const balance = (config: { commitment: string }) => net.valueOf('getBalance', bob.address, config);
    net.advance(10);
    const signature = await net.transfer(alice, bob.address, 1_000_000n);
    const seen: (readonly unknown[])[] = [];
    for (let slot = 0; slot <= ROOTED_LAG; slot += 1) {
      const { confirmationStatus, confirmations } = object(await net.statusOf(signature));
      const balances = [await balance(processed), await balance(confirmed), await balance(finalized)];
      seen.push([confirmationStatus, confirmations, ...balances]);
      net.advance();
    }
    expect(seen).toEqual([
      ['processed', 0n, 1_000_000n, 0n, 0n],
      ['confirmed', 1n, 1_000_000n, 1_000_000n, 0n],
      ['confirmed', 2n, 1_000_000n, 1_000_000n, 0n],
      ['confirmed', 3n, 1_000_000n, 1_000_000n, 0n],
      ['finalized', null, 1_000_000n, 1_000_000n, 1_000_000n],
    ]);
  });

  test('an account that was emptied, and a scan by owner, are what they were at the commitment', async () => {
    const target = addressNumber(5);
    using net = await startChain({ accounts: [...RICH, [bob.address, systemAccount(1_005_000n)]] });
    net.advance(10);
    await net.transfer(bob, target, 1_000_000n);
    const at = async (config: { commitment: string }) => {
      const options = { ...config, encoding: 'base64' };
      const rows = list(await net.result('getProgramAccounts', SYSTEM_PROGRAM, options));
      const found = rows.map((row) => object(row)['pubkey']);
      const read = await net.valueOf('getMultipleAccounts', [bob.address, target], config);
      const lamports = list(read).map((each) => (each === null ? null : object(each)['lamports']));
      return [lamports, found.filter((key) => key === bob.address || key === target)];
    };
    expect(await at(finalized)).toEqual([[1_005_000n, null], [bob.address]]);
    expect(await at(processed)).toEqual([[null, 1_000_000n], [target]]);
    net.advance(ROOTED_LAG);
    expect(await at(finalized)).toEqual([[null, 1_000_000n], [target]]);
  });

  test('a preflight runs on the state and the blockhashes of its commitment', async () => {
    using net = await startChain({ accounts: RICH });
    net.advance(10);
    await net.transfer(alice, bob.address, 100_000_000n);
    const young = net.blockhash();
    const old = net.blockhash('finalized');
    const send = async (blockhash: string, preflightCommitment: string) => {
      const wire = base64(transferWire(bob, alice.address, 50_000_000n, blockhash));
      return (await net.call('sendTransaction', wire, { encoding: 'base64', preflightCommitment }))['error'];
    };
    expect(await send(young, 'finalized')).toMatchObject({ data: { err: 'BlockhashNotFound' } });
    expect(await send(old, 'finalized')).toMatchObject({ data: { err: 'AccountNotFound' } });
    expect(await send(old, 'processed')).toBeUndefined();
    expect(await net.balance(bob.address)).toBe(49_995_000n);
  });
});

describe('blockhashes', () => {
  test('a blockhash is valid for 150 blocks, as lastValidBlockHeight says, and then carries no transaction', async () => {
    using net = await startChain({ accounts: RICH });
    net.advance(10);
    const latest = object(await net.valueOf('getLatestBlockhash', confirmed));
    const hash = String(latest['blockhash']);
    const valid = () => net.valueOf('isBlockhashValid', hash, confirmed);
    expect(latest['lastValidBlockHeight']).toBe(GENESIS_SLOT + 9n + 150n);
    expect(await valid()).toBe(true);
    // The newest one is younger than the bank of the default commitment.
    expect(await net.valueOf('isBlockhashValid', net.blockhash())).toBe(false);
    net.advance(150);
    expect(await net.result('getBlockHeight', confirmed)).toBe(latest['lastValidBlockHeight'] ?? null);
    expect(await valid()).toBe(true);
    net.advance(1);
    expect(await valid()).toBe(false);
    const wire = transferWire(alice, bob.address, 1_000_000n, hash);
    expect(await net.preflightError(wire)).toMatchObject({
      code: -32002n,
      message: 'Transaction simulation failed: Blockhash not found',
    });
    expect(await net.statusOf(await net.send(wire))).toBeNull();
  });
});
