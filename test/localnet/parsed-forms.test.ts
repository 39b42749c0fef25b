import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getTransferInstruction, TOKEN_2022_PROGRAM_ADDRESS } from '@solana-program/token-2022';
import { address, type Address, type Instruction } from '@solana/kit';
import { SYSVAR_STAKE_HISTORY_ADDRESS } from '@solana/sysvars';
import { encodeInstruction } from '../../localnet/encode/instruction.ts';
import { encodeParsedInner, encodeTransaction } from '../../localnet/encode/transaction.ts';
import { type Json, type JsonObject, parseJson, printJson } from '../../localnet/json/value.ts';
import {
  ADDRESS_LOOKUP_TABLE_PROGRAM,
  addressBytes,
  CONFIG_PROGRAM,
  LOADER_V3,
  MEMO_PROGRAM,
  STAKE_PROGRAM,
} from '../../localnet/protocol/address.ts';
import { readTransaction } from '../../localnet/protocol/transaction.ts';
import type { InnerInstructions, TransactionMeta } from '../../localnet/store/ledger.ts';
import { addressNumber, list, object, ownedAccount, startChain, text } from './harness.ts';

const fixture = (name: string): JsonObject =>
  object(parseJson(readFileSync(join(import.meta.dir, '../fixtures', name), 'utf8')));
const asSent = (value: Json) => parseJson(printJson(value));
const bytesOf = (base64: Json | undefined) => new Uint8Array(Buffer.from(text(base64), 'base64'));

const { source: accountsSource, accounts } = fixture('node-accounts.json');
const { source: transactionsSource, transactions } = fixture('node-transactions.json');

test(`accounts are parsed as a node parsed them (${text(accountsSource)})`, async () => {
  const published = list(accounts).map(object);
  const states = published.map(({ address: key, owner, data }) => {
    return [address(text(key)), ownedAccount(address(text(owner)), bytesOf(data))] as const;
  });
  using net = await startChain({ accounts: states });
  expect(published.length).toBeGreaterThan(8);
  for (const { what, address: key, parsed } of published) {
    const found = object(await net.valueOf('getAccountInfo', text(key), { encoding: 'jsonParsed' }));
    expect([what, found['data']]).toEqual([what, parsed]);
  }
});

test.each(
  list(transactions)
    .map(object)
    .map((each) => [text(each['what']), each] as const),
)(
  `the transaction %s is parsed as a node parsed it (${text(transactionsSource)})`,
  (_, { wire, message, compiledInner, innerInstructions }) => {
    const read = readTransaction(bytesOf(wire));
    if (read.kind === 'malformed') throw new Error(read.reason);
    const keys = list(object(message)['accountKeys']).map(object);
    const writableKeys = keys.flatMap(({ pubkey, writable }) =>
      writable === true ? [address(text(pubkey))] : [],
    );
    const keysAlone = { writableKeys, loadedWritable: [], loadedReadonly: [] };
    const meta = keysAlone as unknown as TransactionMeta; // no more of it is read for the message
    const encoded = encodeTransaction(read.transaction, 'jsonParsed', meta);
    // The fixture leaves out what is the same of each: that the transaction itself names it.
    const accountKeys = keys.map((key) => ({ ...key, source: 'transaction' }));
    expect(object(asSent(encoded))['message']).toEqual({ ...object(message), accountKeys });
    const inner = compiledInner as unknown as InnerInstructions; // as the ledger keeps them
    expect(asSent(encodeParsedInner(inner, read.transaction.staticKeys))).toEqual(innerInstructions ?? null);
  },
);

describe('an instruction', () => {
  const [a, b, c] = [addressNumber(1), addressNumber(2), addressNumber(3)];
  const parsed = ({ programAddress, accounts = [], data = new Uint8Array() }: Instruction) =>
    asSent(
      encodeInstruction({
        programId: programAddress,
        accounts: accounts.map((account) => account.address),
        data: new Uint8Array(data),
        stackHeight: 1,
      }),
    );

  test('without the accounts or the data that it needs is partially decoded', () => {
    const whole = getTransferInstruction({ source: a, destination: b, authority: c, amount: 5n });
    const fewAccounts = { ...whole, accounts: whole.accounts.slice(0, 2) };
    const fewBytes = { ...whole, data: whole.data.slice(0, 5) };
    for (const instruction of [fewAccounts, fewBytes])
      expect(parsed(instruction)).toMatchObject({ accounts: expect.any(Array), data: expect.any(String) });
    expect(parsed({ programAddress: MEMO_PROGRAM, data: Uint8Array.of(0xff) })).toMatchObject({
      accounts: [],
    });
  });
});

describe('an account', () => {
  const KEY = addressNumber(20);
  const authority = addressNumber(21);
  const u64 = (value: bigint) => new Uint8Array(BigUint64Array.of(value).buffer);
  const loader = (tag: number, ...rest: readonly Uint8Array[]) =>
    Buffer.concat([Uint8Array.of(tag, 0, 0, 0), ...rest, Buffer.from('code')]);
  const code = [Buffer.from('code').toString('base64'), 'base64'];

  test.each<readonly [string, Address, Uint8Array, string, unknown]>([
    [
      'a lookup table to be',
      ADDRESS_LOOKUP_TABLE_PROGRAM,
      new Uint8Array(56),
      'address-lookup-table',
      { type: 'uninitialized' },
    ],
    [
      'a buffer of the loader',
      LOADER_V3,
      loader(1, Uint8Array.of(1), addressBytes(authority)),
      'bpf-upgradeable-loader',
      { type: 'buffer', info: { authority, data: code } },
    ],
    [
      'ProgramData without an authority, whose code begins where it would stand',
      LOADER_V3,
      loader(3, u64(77n), Uint8Array.of(0)),
      'bpf-upgradeable-loader',
      { type: 'programData', info: { slot: 77n, authority: null, data: code } },
    ],
  ])('%s is parsed', async (_, owner, data, program, parsed) => {
    using net = await startChain({ accounts: [[KEY, ownedAccount(owner, data)]] });
    const found = object(await net.valueOf('getAccountInfo', KEY, { encoding: 'jsonParsed' }));
    expect(found['data']).toEqual({ program, parsed: parsed as Json, space: BigInt(data.length) }); // as listed
  });

  test('the history of stakes is parsed', async () => {
    const data = new Uint8Array(BigUint64Array.of(1n, 7n, 100n, 20n, 3n).buffer);
    const sysvar = ownedAccount(address('Sysvar1111111111111111111111111111111111111'), data);
    using net = await startChain({ accounts: [[SYSVAR_STAKE_HISTORY_ADDRESS, sysvar]] });
    const config = { encoding: 'jsonParsed' };
    const found = object(await net.valueOf('getAccountInfo', SYSVAR_STAKE_HISTORY_ADDRESS, config));
    const stakeHistory = { effective: 100n, activating: 20n, deactivating: 3n };
    const parsed = { type: 'stakeHistory', info: [{ epoch: 7n, stakeHistory }] };
    expect(found['data']).toEqual({ program: 'sysvar', parsed, space: 40n });
  });

  test.each([
    ['a stake', STAKE_PROGRAM],
    ['a mint', TOKEN_2022_PROGRAM_ADDRESS],
    ['a lookup table', ADDRESS_LOOKUP_TABLE_PROGRAM],
    ['what a validator says', CONFIG_PROGRAM],
    ['a program', LOADER_V3],
    ['a sysvar', address('Sysvar1111111111111111111111111111111111111')],
  ])('that is too short for %s is base64', async (_, owner) => {
    using net = await startChain({ accounts: [[KEY, ownedAccount(owner, Uint8Array.of(2, 0, 0))]] });
    const found = object(await net.valueOf('getAccountInfo', KEY, { encoding: 'jsonParsed' }));
    expect(found['data']).toEqual(['AgAA', 'base64']);
  });
});
