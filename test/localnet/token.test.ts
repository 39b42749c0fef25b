import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Address } from '@solana/kit';
import { addressBytes, TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../../localnet/protocol/address.ts';
import { encodeTokenAmount } from '../../localnet/encode/token.ts';
import {
  addressNumber,
  alice,
  bob,
  list,
  mintData,
  object,
  ownedAccount,
  startChain,
  systemAccount,
  tokenData,
  builtWire,
} from './harness.ts';

const MINT = addressNumber(10);
const HERS = addressNumber(11);
const HIS = addressNumber(12);
const EXTENDED_MINT = addressNumber(13);
const OWNED_BY_NOBODY = addressNumber(16);
const DELEGATED = addressNumber(17);

/** An account of which alice may spend 3. */
function delegatedData(mint: Address, owner: Address, amount: bigint): Uint8Array {
  const data = tokenData(mint, owner, amount);
  const view = new DataView(data.buffer);
  view.setUint32(72, 1, true);
  data.set(addressBytes(alice.address), 76);
  view.setBigUint64(121, 3n, true);
  return data;
}

/** A mint or account of Token-2022 with one extension of the given type. */
function extended(data: Uint8Array, accountType: number, extension: number): Uint8Array {
  const value = new Uint8Array(32);
  const grown = new Uint8Array(166 + 4 + value.length);
  grown.set(data);
  grown[165] = accountType;
  const view = new DataView(grown.buffer);
  view.setUint16(166, extension, true);
  view.setUint16(168, value.length, true);
  grown.set(value, 170);
  return grown;
}

const startTokens = () =>
  startChain({
    accounts: [
      [alice.address, systemAccount(10_000_000_000n)],
      [OWNED_BY_NOBODY, ownedAccount(addressNumber(98), mintData(1n, 0))],
      [MINT, ownedAccount(TOKEN_PROGRAM, mintData(1_500_000n, 6))],
      [HERS, ownedAccount(TOKEN_PROGRAM, tokenData(MINT, alice.address, 1_500_000n))],
      [HIS, ownedAccount(TOKEN_PROGRAM, tokenData(MINT, bob.address, 0n))],
      [DELEGATED, ownedAccount(TOKEN_PROGRAM, delegatedData(MINT, bob.address, 40n))],
      [EXTENDED_MINT, ownedAccount(TOKEN_2022_PROGRAM, extended(mintData(7n, 0), 1, 3))],
    ],
  });

let net: Awaited<ReturnType<typeof startTokens>>;
beforeAll(async () => {
  net = await startTokens();
});
afterAll(() => net[Symbol.dispose]());

describe('token amounts', () => {
  test.each([
    [0n, 0, '0'],
    [1n, 6, '0.000001'],
    [1_500_000n, 6, '1.5'],
    [1_000_000n, 6, '1'],
    [100n, 0, '100'],
    [18446744073709551615n, 9, '18446744073.709551615'],
  ])('%p with %i decimals is %s', (amount, decimals, words) => {
    expect(encodeTokenAmount(amount, decimals)).toMatchObject({ uiAmountString: words });
  });

  test('of an account and of a mint, whose floats keep a decimal point as serde prints them', async () => {
    const call = `{"jsonrpc":"2.0","id":1,"method":"getTokenAccountBalance","params":["${HIS}"]}`;
    expect(await net.post(call)).toContain('"uiAmount":0.0,');
    const amount = { amount: '1500000', decimals: 6n, uiAmount: 1.5, uiAmountString: '1.5' };
    expect(await net.valueOf('getTokenAccountBalance', HERS)).toEqual(amount);
    expect(await net.valueOf('getTokenSupply', MINT)).toEqual(amount);
    expect(await net.valueOf('getTokenSupply', EXTENDED_MINT)).toMatchObject({ amount: '7' });
  });
});

describe('the token accounts', () => {
  test.each([
    ['a mint', { mint: MINT }],
    ['a program', { programId: TOKEN_PROGRAM }],
  ])('of an owner and of a delegate are found by %s', async (_, selection) => {
    const of = async (role: 'Owner' | 'Delegate', key: Address) => {
      const config = { encoding: 'jsonParsed' };
      return list(await net.valueOf(`getTokenAccountsBy${role}`, key, selection, config)).map(object);
    };
    expect((await of('Owner', alice.address)).map((row) => row['pubkey'])).toEqual([HERS]);
    expect(await of('Owner', addressNumber(1))).toEqual([]);
    expect(await of('Delegate', bob.address)).toEqual([]);
    const [row, ...others] = await of('Delegate', alice.address);
    expect([row?.['pubkey'], others]).toEqual([DELEGATED, []]);
    const delegatedAmount = { amount: '3', decimals: 6n, uiAmount: 0.000003, uiAmountString: '0.000003' };
    expect(object(row?.['account'])['data']).toMatchObject({
      parsed: { info: { delegate: alice.address, delegatedAmount } },
    });
  });

  test('that hold most of a mint come first', async () => {
    expect(await net.valueOf('getTokenLargestAccounts', MINT)).toEqual([
      { address: HERS, amount: '1500000', decimals: 6n, uiAmount: 1.5, uiAmountString: '1.5' },
      { address: DELEGATED, amount: '40', decimals: 6n, uiAmount: 0.00004, uiAmountString: '0.00004' },
      { address: HIS, amount: '0', decimals: 6n, uiAmount: 0, uiAmountString: '0' },
    ]);
  });
});

describe('token balances of transactions', () => {
  test('stand in the meta with owner and program, before and after', async () => {
    const blockhash = net.blockhash();
    const data = [3, ...new Uint8Array(BigUint64Array.of(400_000n).buffer)];
    const wire = builtWire(alice, blockhash, [
      { program: TOKEN_PROGRAM, accounts: [HERS, HIS, alice.address], data },
    ]);
    const signature = await net.send(wire);
    net.advance();
    const { meta } = object(await net.result('getTransaction', signature, { commitment: 'confirmed' }));
    const balance = (accountIndex: bigint, owner: Address, amount: bigint) => ({
      accountIndex,
      mint: MINT,
      owner,
      programId: TOKEN_PROGRAM,
      uiTokenAmount: expect.objectContaining({ amount: String(amount), decimals: 6n }),
    });
    expect(meta).toMatchObject({
      err: null,
      preTokenBalances: [balance(1n, alice.address, 1_500_000n), balance(2n, bob.address, 0n)],
      postTokenBalances: [balance(1n, alice.address, 1_100_000n), balance(2n, bob.address, 400_000n)],
    });
  });
});
