import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { getBase58Decoder } from '@solana/kit';
import { GENESIS_SLOT } from '../../localnet/genesis/accounts.ts';
import { MEMO_PROGRAM } from '../../localnet/protocol/address.ts';
import type { Json } from '../../localnet/json/value.ts';
import {
  addressNumber,
  alice,
  BEGAN_MS,
  bob,
  list,
  object,
  startChain,
  text,
  RICH,
  builtWire,
  SYSTEM,
  transferData,
} from './harness.ts';

const confirmed = { commitment: 'confirmed' };

/** Two transfers in one slot, one in each of two more; newest last. */
async function startBusy() {
  const net = await startChain({ accounts: RICH });
  net.advance(10);
  const signatures = [
    await net.transfer(alice, bob.address, 1_000_000n),
    await net.transfer(alice, bob.address, 2_000_000n),
  ];
  net.advance(2);
  signatures.push(await net.transfer(alice, bob.address, 3_000_000n));
  net.advance();
  signatures.push(await net.transfer(alice, bob.address, 4_000_000n));
  net.advance();
  const rows = async (config: Record<string, Json>) => {
    const found = list(await net.result('getSignaturesForAddress', bob.address, { ...confirmed, ...config }));
    return found.map((row) => signatures.indexOf(text(object(row)['signature'])));
  };
  return { net, signatures, rows, [Symbol.dispose]: () => net[Symbol.dispose]() };
}

let busy: Awaited<ReturnType<typeof startBusy>>;
beforeAll(async () => {
  busy = await startBusy();
});
afterAll(() => busy[Symbol.dispose]());

describe('getTransaction', () => {
  test('gives slot, time, meta and message', async () => {
    const { net, signatures } = busy;
    const slot = GENESIS_SLOT + 10n;
    expect(await net.result('getTransaction', signatures[1] ?? '', confirmed)).toEqual({
      blockTime: BigInt(BEGAN_MS / 1000 + 4),
      slot,
      meta: {
        computeUnitsConsumed: 150n,
        err: null,
        fee: 5_000n,
        innerInstructions: [],
        loadedAddresses: { readonly: [], writable: [] },
        logMessages: [`Program ${SYSTEM} invoke [1]`, `Program ${SYSTEM} success`],
        postBalances: [9_996_990_000n, 3_000_000n, 1n],
        postTokenBalances: [],
        preBalances: [9_998_995_000n, 1_000_000n, 1n],
        preTokenBalances: [],
        rewards: [],
        status: { Ok: null },
      },
      transaction: {
        message: {
          accountKeys: [alice.address, bob.address, SYSTEM],
          header: {
            numReadonlySignedAccounts: 0n,
            numReadonlyUnsignedAccounts: 1n,
            numRequiredSignatures: 1n,
          },
          instructions: [
            {
              accounts: [0n, 1n],
              data: getBase58Decoder().decode(Uint8Array.from(transferData(2_000_000n))),
              programIdIndex: 2n,
              stackHeight: 1n,
            },
          ],
          recentBlockhash: net.chain.blockhashOf(slot - 1n),
        },
        signatures: [signatures[1] ?? ''],
      },
    });
  });

  test('is null above its commitment and for unknown signatures, and has its version when a maximum is named', async () => {
    const last = busy.signatures[3] ?? '';
    const config = { ...confirmed, maxSupportedTransactionVersion: 0n };
    expect(await busy.net.result('getTransaction', last, config)).toMatchObject({ version: 'legacy' });
    expect(await busy.net.result('getTransaction', last)).toBeNull();
    expect(await busy.net.result('getTransaction', '1'.repeat(64), confirmed)).toBeNull();
  });
});

describe('getSignaturesForAddress', () => {
  test.each([
    [{}, [3, 2, 1, 0]],
    [{ limit: 2n }, [3, 2]],
    [{ before: 2 }, [1, 0]],
    [{ until: 1 }, [3, 2]],
    [{ before: 3, until: 0 }, [2, 1]],
    [{ before: 1, limit: 1n }, [0]],
    [{ before: 0 }, []],
    [{ before: 1, until: 1 }, []],
  ])('%p gives %p: newest first, and cursors are exclusive', async (config, expected) => {
    const named = Object.fromEntries(
      Object.entries(config).map(([name, value]) => [
        name,
        typeof value === 'number' ? (busy.signatures[value] ?? '') : value,
      ]),
    );
    expect(await busy.rows(named)).toEqual(expected);
  });

  test('shows what is confirmed to those who ask for it, and only the finalized by default', async () => {
    expect(await busy.net.result('getSignaturesForAddress', bob.address)).toHaveLength(2);
    const rows = list(await busy.net.result('getSignaturesForAddress', bob.address, confirmed)).map(object);
    expect(rows.map((row) => row['confirmationStatus'])).toEqual([
      'confirmed',
      'confirmed',
      'finalized',
      'finalized',
    ]);
    expect(rows.map((row) => row['transactionIndex'])).toEqual([0n, 0n, 1n, 0n]);
    expect(rows[3]).toEqual({
      blockTime: BigInt(BEGAN_MS / 1000 + 4),
      confirmationStatus: 'finalized',
      err: null,
      memo: null,
      signature: busy.signatures[0] ?? '',
      slot: GENESIS_SLOT + 10n,
      transactionIndex: 0n,
    });
  });

  test('shows memos with their length, and once what names an address twice', async () => {
    using net = await startChain({ accounts: RICH });
    const memo = (words: string) => ({ program: MEMO_PROGRAM, accounts: [], data: [...Buffer.from(words)] });
    const there = addressNumber(2);
    const paid = { program: SYSTEM, accounts: [alice.address, there], data: transferData(1_000_000n) };
    await net.send(builtWire(alice, net.blockhash(), [memo('hallo'), memo('é'), paid, paid]));
    net.advance();
    for (const key of [alice.address, there])
      expect(await net.result('getSignaturesForAddress', key, confirmed)).toEqual([
        expect.objectContaining({ memo: '[5] hallo; [2] é', err: null }),
      ]);
  });
});

describe('getSignatureStatuses', () => {
  test('forgets old signatures unless history is searched, and keeps positions', async () => {
    using net = await startChain({ accounts: RICH });
    const signature = await net.transfer(alice, bob.address, 1_000_000n);
    net.advance(304);
    expect(await net.valueOf('getSignatureStatuses', [signature])).toEqual([expect.anything()]);
    net.advance(1);
    expect(await net.valueOf('getSignatureStatuses', [signature])).toEqual([null]);
    const searched = { searchTransactionHistory: true };
    const stranger = '1'.repeat(64);
    expect(await net.valueOf('getSignatureStatuses', [stranger, signature], searched)).toEqual([
      null,
      {
        confirmationStatus: 'finalized',
        confirmations: null,
        err: null,
        slot: GENESIS_SLOT,
        status: { Ok: null },
      },
    ]);
  });
});

describe('getBlock', () => {
  const slot = GENESIS_SLOT + 10n;
  test('gives its transactions in the order they ran, linked to its parent', async () => {
    const block = object(await busy.net.result('getBlock', slot, confirmed));
    const next = object(await busy.net.result('getBlock', slot + 1n, confirmed));
    expect(
      list(block['transactions']).map((row) => object(object(row)['transaction'])['signatures']),
    ).toEqual([busy.signatures.slice(0, 1), busy.signatures.slice(1, 2)]);
    expect(next).toEqual({
      blockHeight: slot + 1n,
      blockTime: BigInt(BEGAN_MS / 1000 + 4),
      blockhash: expect.any(String),
      parentSlot: slot,
      previousBlockhash: block['blockhash'] ?? '',
      rewards: [],
      transactions: [],
    });
  });
});

describe('ranges of slots', () => {
  test.each([
    ['getBlocks', [7n, 5n], []],
    ['getBlocks', [GENESIS_SLOT + 4n], [GENESIS_SLOT + 4n, GENESIS_SLOT + 5n, GENESIS_SLOT + 6n]],
    ['getBlocks', [GENESIS_SLOT + 8n, { commitment: 'confirmed' }], [GENESIS_SLOT + 8n, GENESIS_SLOT + 9n]],
    [
      'getBlocks',
      [GENESIS_SLOT + 8n, null, { commitment: 'confirmed' }],
      [GENESIS_SLOT + 8n, GENESIS_SLOT + 9n],
    ],
    ['getBlocksWithLimit', [5n, 0n], []],
    ['getBlocksWithLimit', [GENESIS_SLOT + 5n, 10n], [GENESIS_SLOT + 5n, GENESIS_SLOT + 6n]],
  ] as [string, Json[], bigint[]][])('%s %p', async (method, params, slots) => {
    using net = await startChain();
    net.advance(10);
    expect(await net.result(method, ...params)).toEqual(slots);
  });
});
