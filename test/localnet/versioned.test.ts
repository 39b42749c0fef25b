import { describe, expect, test } from 'bun:test';
import { getTransferSolInstruction } from '@solana-program/system';
import { lamports, type Address } from '@solana/kit';
import { ADDRESS_LOOKUP_TABLE_PROGRAM, addressBytes } from '../../localnet/protocol/address.ts';
import {
  addressNumber,
  alice,
  bob,
  object,
  ownedAccount,
  startChain,
  systemAccount,
  CHECKED,
} from './harness.ts';
import { kitWire, signerOf } from './kit-transaction.ts';
import { SYSTEM } from './wire.ts';

const TABLE = addressNumber(500);
const confirmed = { commitment: 'confirmed' };

/** A lookup table that was filled long ago. */
function tableData(addresses: readonly Address[]): Uint8Array {
  const data = new Uint8Array(56 + addresses.length * 32);
  const view = new DataView(data.buffer);
  view.setUint32(0, 1, true);
  view.setBigUint64(4, 18446744073709551615n, true);
  view.setBigUint64(12, 1n, true);
  addresses.forEach((key, index) => data.set(addressBytes(key), 56 + index * 32));
  return data;
}

async function startTabled() {
  const net = await startChain({
    accounts: [
      [alice.address, systemAccount(10_000_000_000n)],
      [TABLE, ownedAccount(ADDRESS_LOOKUP_TABLE_PROGRAM, tableData([addressNumber(1), bob.address]))],
    ],
  });
  net.advance(10);
  const transfer = getTransferSolInstruction({
    source: await signerOf(alice),
    destination: bob.address,
    amount: lamports(1_000_000n),
  });
  const blockhash = net.blockhash();
  const wire = await kitWire(alice, blockhash, [transfer], { [TABLE]: [addressNumber(1), bob.address] });
  return { net, wire, [Symbol.dispose]: () => net[Symbol.dispose]() };
}

describe('a v0 transaction with a lookup table', () => {
  test('runs, and its meta and message name what was loaded', async () => {
    using tabled = await startTabled();
    const { net, wire } = tabled;
    const signature = await net.send(wire, CHECKED);
    expect(await net.balance(bob.address)).toBe(1_000_000n);
    net.advance();
    const found = object(
      await net.result('getTransaction', signature, { ...confirmed, maxSupportedTransactionVersion: 0n }),
    );
    expect(found).toMatchObject({
      version: 0n,
      meta: {
        loadedAddresses: { writable: [bob.address], readonly: [] },
        preBalances: [10_000_000_000n, 1n, 0n],
        postBalances: [9_998_995_000n, 1n, 1_000_000n],
      },
      transaction: {
        message: {
          accountKeys: [alice.address, SYSTEM],
          addressTableLookups: [{ accountKey: TABLE, writableIndexes: [1n], readonlyIndexes: [] }],
        },
      },
    });
    expect(await net.result('getSignaturesForAddress', bob.address, confirmed)).toHaveLength(1);
  });

  test('is refused with -32015 to clients that name no version, alone and in its block', async () => {
    using tabled = await startTabled();
    const { net, wire } = tabled;
    const signature = await net.send(wire, CHECKED);
    const slot = await net.result('getSlot', { commitment: 'processed' });
    net.advance();
    const error = {
      code: -32015n,
      message:
        'Transaction version (0) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": 0',
    };
    expect(await net.refusal('getTransaction', signature, confirmed)).toEqual(error);
    expect(await net.refusal('getBlock', slot, confirmed)).toEqual(error);
    expect(
      await net.result('getBlock', slot, { ...confirmed, transactionDetails: 'signatures' }),
    ).toMatchObject({ signatures: [signature] });
  });

  test('is parsed with the source of each key, and with what the table gave in its instructions', async () => {
    using tabled = await startTabled();
    const { net, wire } = tabled;
    const signature = await net.send(wire, CHECKED);
    net.advance();
    const config = { ...confirmed, encoding: 'jsonParsed', maxSupportedTransactionVersion: 0n };
    const { meta, transaction } = object(await net.result('getTransaction', signature, config));
    expect(object(meta)).not.toHaveProperty('loadedAddresses');
    expect(object(transaction)['message']).toEqual({
      accountKeys: [
        { pubkey: alice.address, signer: true, source: 'transaction', writable: true },
        { pubkey: SYSTEM, signer: false, source: 'transaction', writable: false },
        { pubkey: bob.address, signer: false, source: 'lookupTable', writable: true },
      ],
      addressTableLookups: [{ accountKey: TABLE, writableIndexes: [1n], readonlyIndexes: [] }],
      instructions: [
        {
          program: 'system',
          programId: SYSTEM,
          parsed: {
            type: 'transfer',
            info: { source: alice.address, destination: bob.address, lamports: 1_000_000n },
          },
          stackHeight: 1n,
        },
      ],
      recentBlockhash: expect.any(String),
    });
  });

  test('is refused when its table is not there', async () => {
    using tabled = await startTabled();
    const transfer = getTransferSolInstruction({
      source: await signerOf(alice),
      destination: bob.address,
      amount: lamports(1n),
    });
    const blockhash = tabled.net.blockhash();
    const wire = await kitWire(alice, blockhash, [transfer], { [addressNumber(501)]: [bob.address] });
    expect(await tabled.net.preflightError(wire)).toMatchObject({
      code: -32002n,
      data: { err: 'AddressLookupTableNotFound' },
    });
  });
});
