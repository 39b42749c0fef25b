import { describe, expect, test } from 'bun:test';
import { getBase58Decoder } from '@solana/kit';
import { GENESIS_SLOT } from '../../localnet/genesis/accounts.ts';
import type { Json } from '../../localnet/json/value.ts';
import { transferWire } from '../../localnet/protocol/keypair.ts';
import {
  addressNumber,
  alice,
  base64,
  bob,
  list,
  object,
  startChain,
  systemAccount,
  UNCHECKED,
  RICH,
  CHECKED,
  builtWire,
  COMPUTE_BUDGET,
  SYSTEM,
  transferData,
  type WireInstruction,
} from './harness.ts';

const processed = { commitment: 'processed', encoding: 'base64' };

async function startRich() {
  const net = await startChain({ accounts: RICH });
  net.advance(10);
  const simulate = async (wire: Uint8Array, config: Record<string, Json> = {}) =>
    object(await net.valueOf('simulateTransaction', base64(wire), { ...processed, ...config }));
  return { ...net, simulate };
}

describe('sendTransaction', () => {
  test('takes base58 by default and base64 by its encoding, and gives the first signature', async () => {
    using net = await startRich();
    const one = transferWire(alice, bob.address, 1_000_000n, net.blockhash());
    const other = transferWire(alice, bob.address, 2_000_000n, net.blockhash());
    const signatures = [
      await net.result('sendTransaction', getBase58Decoder().decode(one), {
        preflightCommitment: 'processed',
      }),
      await net.send(other, CHECKED),
    ];
    expect(signatures).toEqual([one, other].map((wire) => getBase58Decoder().decode(wire.subarray(1, 65))));
    for (const signature of signatures)
      expect(await net.statusOf(String(signature))).toMatchObject({ err: null });
    expect(await net.balance(bob.address)).toBe(3_000_000n);
  });

  test('refuses a copy of what is in the bank, and sends a failed one only once', async () => {
    using net = await startRich();
    const wire = base64(transferWire(alice, bob.address, 1_000_000n, net.blockhash()));
    await net.result('sendTransaction', wire, CHECKED);
    expect(await net.refusal('sendTransaction', wire, CHECKED)).toMatchObject({
      code: -32002n,
      message: 'Transaction simulation failed: This transaction has already been processed',
      data: { err: 'AlreadyProcessed' },
    });
    await net.result('sendTransaction', wire, UNCHECKED);
    expect(await net.balance(bob.address)).toBe(1_000_000n);
  });

  test('answers a failed preflight with the whole simulation, which kit and web3.js read', async () => {
    using net = await startRich();
    const wire = base64(transferWire(alice, bob.address, 10n ** 15n, net.blockhash()));
    const error = await net.refusal('sendTransaction', wire, CHECKED);
    expect(error).toMatchObject({
      code: -32002n,
      message: 'Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1',
    });
    const data = object(error['data']);
    expect(data['err']).toEqual({ InstructionError: [0n, { Custom: 1n }] });
    expect(list(data['logs'])).toContain('Transfer: insufficient lamports 9999995000, need 1000000000000000');
    expect(Object.keys(data)).toEqual(Object.keys(data).toSorted());
    expect(data).toMatchObject({
      accounts: null,
      innerInstructions: null,
      returnData: null,
      replacementBlockhash: null,
    });
    expect(data['unitsConsumed']).toBe(150n);
  });

  test.each<[bigint, Json]>([
    [10n ** 15n, { InstructionError: [0n, { Custom: 1n }] }],
    [100n, { InsufficientFundsForRent: { account_index: 1n } }],
  ])('keeps a failed transfer of %i, with its fee taken and nothing else', async (lamports, err) => {
    using net = await startRich();
    const signature = await net.transfer(alice, bob.address, lamports);
    expect(await net.statusOf(signature)).toMatchObject({ err, status: { Err: err } });
    expect(await net.balance(alice.address)).toBe(9_999_995_000n);
  });

  test.each([
    ['of a payer without an account', 'AccountNotFound'],
    ['of a payer too poor for the fee', 'InsufficientFundsForFee'],
  ])('%s refuses it without a trace', async (_, err) => {
    const payer = err === 'AccountNotFound' ? bob : alice;
    using net = await startChain({ accounts: [[alice.address, systemAccount(4_999n)]] });
    const wire = transferWire(payer, addressNumber(1), 1n, net.blockhash());
    expect(await net.preflightError(wire)).toMatchObject({
      code: -32002n,
      data: { err },
    });
    await net.send(wire);
    expect(await net.result('getTransactionCount', { commitment: 'processed' })).toBe(0n);
  });

  const system = (data: number[]) => ({ program: SYSTEM, accounts: [], data });
  const called = { program: bob.address, accounts: [], data: [] };
  test.each<[string, unknown, WireInstruction[]]>([
    [
      'Attempt to load a program that does not exist',
      'ProgramAccountNotFound',
      [{ ...called, program: addressNumber(8) }],
    ],
    ['This program may not be used for executing instructions', 'InvalidProgramForExecution', [called]],
    [
      'Error processing Instruction 0: invalid instruction data',
      { InstructionError: [0n, 'InvalidInstructionData'] },
      [system([9, 9, 9, 9, 9])],
    ],
    [
      'Error processing Instruction 0: An account required by the instruction is missing',
      { InstructionError: [0n, 'MissingAccount'] },
      [system(transferData(1n))],
    ],
  ])('a preflight says: %s', async (words, err, instructions) => {
    using net = await startChain({ accounts: [...RICH, [bob.address, systemAccount(1_000_000n)]] });
    expect(await net.preflightError(builtWire(alice, net.blockhash(), instructions))).toMatchObject({
      message: `Transaction simulation failed: ${words}`,
      data: { err },
    });
  });
});

describe('fees', () => {
  const unitLimit = (units: number) => [2, ...new Uint8Array(Uint32Array.of(units).buffer)];
  const unitPrice = (price: bigint) => [3, ...new Uint8Array(BigUint64Array.of(price).buffer)];
  test.each([
    ['no budget', [], 5_000n],
    ['a price alone is paid for the units allotted', [unitPrice(1_000_000n)], 5_000n + 6_000n],
    ['a price and a limit', [unitPrice(1_000_000n), unitLimit(50_000)], 5_000n + 50_000n],
    ['a price that does not come out even is rounded up', [unitPrice(3n), unitLimit(500_001)], 5_002n],
  ])('%s: what is named, what is taken and what is recorded agree', async (_, budget, fee) => {
    using net = await startRich();
    const wire = builtWire(alice, net.blockhash(), [
      ...budget.map((data) => ({ program: COMPUTE_BUDGET, accounts: [], data })),
      { program: SYSTEM, accounts: [alice.address, bob.address], data: transferData(1_000_000n) },
    ]);
    const message = base64(wire.subarray(65));
    const strange = builtWire(alice, addressNumber(3), []);
    expect(await net.valueOf('getFeeForMessage', base64(strange.subarray(65)))).toBeNull();
    expect(await net.valueOf('getFeeForMessage', message, { commitment: 'processed' })).toBe(fee);
    const signature = await net.send(wire, CHECKED);
    expect(await net.balance(alice.address)).toBe(10_000_000_000n - 1_000_000n - fee);
    net.advance();
    expect(await net.result('getTransaction', signature, { commitment: 'confirmed' })).toMatchObject({
      meta: { fee },
    });
  });
});

describe('simulateTransaction', () => {
  test('shows what a transaction would do and changes nothing', async () => {
    using net = await startRich();
    expect(await net.simulate(transferWire(alice, bob.address, 1_000_000n, net.blockhash()))).toEqual({
      accounts: null,
      err: null,
      fee: 5_000n,
      innerInstructions: null,
      loadedAccountsDataSize: 149n,
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

  test('runs at the state of its commitment, shows a failure without accounts and with its fee taken, and changes nothing', async () => {
    using net = await startRich();
    await net.transfer(alice, bob.address, 9_000_000_000n);
    const wire = builtWire(alice, net.blockhash('finalized'), [
      { program: SYSTEM, accounts: [alice.address, addressNumber(5)], data: transferData(5_000_000_000n) },
    ]);
    expect(await net.simulate(wire, { commitment: 'finalized' })).toMatchObject({ err: null });
    const accounts = { encoding: 'base64', addresses: [alice.address] };
    expect(await net.simulate(wire, { accounts })).toMatchObject({
      err: { InstructionError: [0n, { Custom: 1n }] },
      accounts: [null],
      postBalances: [999_990_000n, 0n, 1n],
    });
    expect(await net.balance(bob.address)).toBe(9_000_000_000n);
    expect(await net.balance(addressNumber(5))).toBe(0n);
  });
});
