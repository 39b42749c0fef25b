import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import {
  getAdvanceNonceAccountInstruction,
  getCreateAccountInstruction,
  getInitializeNonceAccountInstruction,
  getNonceEncoder,
  getTransferSolInstruction,
  NonceState,
  NonceVersion,
} from '@solana-program/system';
import { lamports, type Address } from '@solana/kit';
import { GENESIS_SLOT } from '../../localnet/genesis/accounts.ts';
import {
  ADDRESS_LOOKUP_TABLE_PROGRAM,
  addressBytes,
  addressOf,
  SYSTEM_PROGRAM,
} from '../../localnet/protocol/address.ts';
import { keypairNamed } from '../../localnet/protocol/keypair.ts';
import {
  addressNumber,
  alice,
  base64,
  bob,
  CHECKED,
  object,
  ownedAccount,
  RICH,
  startChain,
  UNCHECKED,
  SYSTEM,
  kitWire,
  signerOf,
} from './harness.ts';

const NONCE = addressNumber(600);
const FIRST = addressNumber(601);

const nonceData = () =>
  new Uint8Array(
    getNonceEncoder().encode({
      version: NonceVersion.Current,
      state: NonceState.Initialized,
      authority: alice.address,
      blockhash: FIRST,
      lamportsPerSignature: 5_000n,
    }),
  );

async function startNonced() {
  const net = await startChain({
    accounts: [...RICH, [NONCE, ownedAccount(SYSTEM_PROGRAM, nonceData())]],
  });
  net.advance(300);
  const nonce = () =>
    addressOf(net.chain.viewAt('processed').account(NONCE)?.data.subarray(40, 72) ?? new Uint8Array(32));
  const wire = async (blockhash: string, amount: bigint) => {
    const source = await signerOf(alice);
    return kitWire(alice, blockhash, [
      getAdvanceNonceAccountInstruction({ nonceAccount: NONCE, nonceAuthority: source }),
      getTransferSolInstruction({ source, destination: bob.address, amount: lamports(amount) }),
    ]);
  };
  return { net, nonce, wire, [Symbol.dispose]: () => net[Symbol.dispose]() };
}

describe('a durable nonce', () => {
  test('carries a transaction instead of a blockhash, once', async () => {
    using nonced = await startNonced();
    const { net, nonce, wire } = nonced;
    await net.send(await wire(FIRST, 1_000_000n), CHECKED);
    expect(await net.balance(bob.address)).toBe(1_000_000n);
    expect(nonce()).not.toBe(FIRST);
    expect(await net.preflightError(await wire(FIRST, 2_000_000n))).toMatchObject({
      data: { err: 'BlockhashNotFound' },
    });
    net.advance();
    await net.send(await wire(nonce(), 2_000_000n), CHECKED);
    expect(await net.balance(bob.address)).toBe(3_000_000n);
  });

  test('derives from the newest block, so that one blockhash makes an account and advances it in a later slot alone', async () => {
    using net = await startChain({ accounts: RICH });
    net.advance(10);
    const [payer, newAccount] = [await signerOf(alice), await signerOf(keypairNamed('a nonce'))];
    const nonceAccount = newAccount.address;
    const cached = net.blockhash();
    const advance = getAdvanceNonceAccountInstruction({ nonceAccount, nonceAuthority: payer });
    const advanceWire = await kitWire(alice, cached, [advance]);
    const created = { payer, newAccount, lamports: 1_500_000n, space: 80n, programAddress: SYSTEM_PROGRAM };
    await net.send(
      await kitWire(alice, cached, [
        getCreateAccountInstruction(created),
        getInitializeNonceAccountInstruction({ nonceAccount, nonceAuthority: alice.address }),
      ]),
      CHECKED,
    );
    const nonce = () =>
      addressOf(
        net.chain.viewAt('processed').account(nonceAccount)?.data.subarray(40, 72) ?? new Uint8Array(32),
      );
    const first = nonce();
    const once = { InstructionError: [0n, { Custom: 7n }] };
    expect(await net.preflightError(advanceWire)).toMatchObject({ data: { err: once } });
    net.advance();
    const forged = new Uint8Array(advanceWire);
    forged[5] = (forged[5] ?? 0) ^ 1;
    expect(await net.statusOf(await net.send(forged))).toBeNull();
    expect(await net.statusOf(await net.send(advanceWire, CHECKED))).toMatchObject({ err: null });
    expect(nonce()).not.toBe(first);
    // A transaction that carries the nonce leaves one of the newest block, too, also when it fails.
    for (const amount of [1n, 10n ** 15n]) {
      net.advance();
      const before = nonce();
      const pay = getTransferSolInstruction({
        source: payer,
        destination: alice.address,
        amount: lamports(amount),
      });
      await net.send(await kitWire(alice, before, [advance, pay]));
      const next = createHash('sha256').update('DURABLE_NONCE');
      expect(nonce()).toBe(addressOf(next.update(addressBytes(net.blockhash() as Address)).digest())); // has its form
    }
  });
});

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

/** A lookup table whose addresses were added in a slot that has not come yet, as for a transaction in that slot. */
function extendedNow(addresses: readonly Address[]): Uint8Array {
  const data = tableData(addresses);
  new DataView(data.buffer).setBigUint64(12, GENESIS_SLOT + 1_000n, true);
  return data;
}

const TOO_MANY = [...Array.from({ length: 9 }, (_, index) => addressNumber(800 + index)), bob.address];

async function startTabled() {
  const net = await startChain({
    accounts: [
      ...RICH,
      [TABLE, ownedAccount(ADDRESS_LOOKUP_TABLE_PROGRAM, tableData([addressNumber(1), bob.address]))],
      [addressNumber(502), ownedAccount(ADDRESS_LOOKUP_TABLE_PROGRAM, new Uint8Array(56))],
      [addressNumber(503), ownedAccount(ADDRESS_LOOKUP_TABLE_PROGRAM, extendedNow([bob.address]))],
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
  const signature = await net.send(wire, CHECKED);
  const slot = await net.result('getSlot', { commitment: 'processed' });
  net.advance();
  return { net, transfer, signature, slot };
}

let tabled: Awaited<ReturnType<typeof startTabled>>;
beforeAll(async () => {
  tabled = await startTabled();
});
afterAll(() => tabled.net[Symbol.dispose]());

describe('a v0 transaction with a lookup table', () => {
  test('runs, and its meta and message name what was loaded', async () => {
    const { net, signature } = tabled;
    expect(await net.balance(bob.address)).toBe(1_000_000n);
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
    const { net, signature, slot } = tabled;
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

  test.each<[Address, Address[], string]>([
    [addressNumber(501), [bob.address], "Transaction loads an address table account that doesn't exist"],
    [alice.address, [bob.address], 'Transaction loads an address table account with an invalid owner'],
    [addressNumber(502), [bob.address], 'Transaction loads an address table account with invalid data'],
    [addressNumber(503), [bob.address], 'Transaction address table lookup uses an invalid index'],
    [TABLE, TOO_MANY, 'Transaction address table lookup uses an invalid index'],
  ])('is refused for a table that gives nothing: %s', async (table, addresses, words) => {
    const { net, transfer } = tabled;
    const wire = await kitWire(alice, net.blockhash(), [transfer], { [table]: addresses });
    const refusal = { code: -32602n, message: `invalid transaction: ${words}` };
    expect(await net.preflightError(wire)).toEqual(refusal);
    expect(await net.refusal('sendTransaction', base64(wire), UNCHECKED)).toEqual(refusal);
  });
});
