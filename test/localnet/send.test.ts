import { describe, expect, test } from 'bun:test';
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
  text,
  UNCHECKED,
  RICH,
  CHECKED,
} from './harness.ts';
import { builtWire, COMPUTE_BUDGET, SYSTEM, transferData, type WireInstruction } from './wire.ts';

async function startRich() {
  const net = await startChain({ accounts: RICH });
  net.advance(10);
  return net;
}

describe('sendTransaction', () => {
  test('takes base58 by default and base64 by its encoding, and gives the first signature', async () => {
    using net = await startRich();
    const { getBase58Decoder } = await import('@solana/kit');
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

  test('refuses a forged signature with -32003, and without preflight it vanishes', async () => {
    using net = await startRich();
    const wire = transferWire(alice, bob.address, 1_000_000n, net.blockhash());
    wire[5] = (wire[5] ?? 0) ^ 1;
    expect(await net.preflightError(wire)).toEqual({
      code: -32003n,
      message: 'Transaction signature verification failure',
    });
    const signature = await net.send(wire);
    expect(await net.statusOf(signature)).toBeNull();
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

  test('keeps a transaction that failed, with its fee taken and nothing else', async () => {
    using net = await startRich();
    const signature = await net.transfer(alice, bob.address, 10n ** 15n);
    expect(await net.statusOf(signature)).toMatchObject({
      err: { InstructionError: [0n, { Custom: 1n }] },
      status: { Err: { InstructionError: [0n, { Custom: 1n }] } },
    });
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

  test('leaving an account below rent is kept as InsufficientFundsForRent', async () => {
    using net = await startRich();
    const signature = await net.transfer(alice, bob.address, 100n);
    expect(await net.statusOf(signature)).toMatchObject({
      err: { InsufficientFundsForRent: { account_index: 1n } },
    });
    expect(await net.balance(alice.address)).toBe(9_999_995_000n);
  });

  test('calling a program that does not exist takes the fee and is kept as ProgramAccountNotFound', async () => {
    using net = await startRich();
    const wire = builtWire(alice, net.blockhash(), [{ program: addressNumber(9), accounts: [], data: [] }]);
    const signature = await net.send(wire);
    expect(await net.statusOf(signature)).toMatchObject({ err: 'ProgramAccountNotFound' });
    expect(await net.balance(alice.address)).toBe(9_999_995_000n);
    expect(
      await net.preflightError(
        builtWire(alice, net.blockhash(), [{ program: addressNumber(8), accounts: [], data: [] }]),
      ),
    ).toMatchObject({
      message: 'Transaction simulation failed: Attempt to load a program that does not exist',
    });
  });

  const budget = { program: COMPUTE_BUDGET, accounts: [], data: [3, 1, 0, 0, 0, 0, 0, 0, 0] };
  const system = (data: number[]) => ({ program: SYSTEM, accounts: [], data });
  const called = { program: bob.address, accounts: [], data: [] };
  test.each<[string, unknown, WireInstruction[]]>([
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
    [
      'Transaction contains a duplicate instruction (1) that is not allowed',
      { DuplicateInstruction: 1n },
      [budget, budget],
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
    expect(await net.valueOf('getFeeForMessage', message, { commitment: 'processed' })).toBe(fee);
    const signature = await net.send(wire, CHECKED);
    expect(await net.balance(alice.address)).toBe(10_000_000_000n - 1_000_000n - fee);
    net.advance();
    expect(await net.result('getTransaction', signature, { commitment: 'confirmed' })).toMatchObject({
      meta: { fee },
    });
  });

  test('a message with an unknown blockhash has no fee', async () => {
    using net = await startRich();
    const wire = builtWire(alice, addressNumber(3), [
      { program: SYSTEM, accounts: [alice.address, bob.address], data: transferData(1n) },
    ]);
    expect(await net.valueOf('getFeeForMessage', base64(wire.subarray(65)))).toBeNull();
  });

  test('recent prices are those of the last 150 blocks, per write-locked account', async () => {
    using net = await startRich();
    const wire = builtWire(alice, net.blockhash(), [
      { program: COMPUTE_BUDGET, accounts: [], data: unitPrice(77n) },
      { program: SYSTEM, accounts: [alice.address, bob.address], data: transferData(1_000_000n) },
    ]);
    await net.send(wire, CHECKED);
    const slot = await net.result('getSlot', { commitment: 'processed' });
    net.advance(3);
    const fees = list(await net.result('getRecentPrioritizationFees', [bob.address]));
    expect(fees).toHaveLength(150);
    expect(fees.filter((row) => object(row)['prioritizationFee'] !== 0n)).toEqual([
      { prioritizationFee: 77n, slot },
    ]);
  });
});

describe('requestAirdrop', () => {
  test('is a transfer that history knows', async () => {
    using net = await startChain();
    const signature = await net.result('requestAirdrop', bob.address, 5_000_000_000n);
    expect(await net.balance(bob.address)).toBe(5_000_000_000n);
    net.advance();
    expect(await net.result('getTransaction', signature, { commitment: 'confirmed' })).toMatchObject({
      meta: { err: null },
    });
  });

  test('twice within a slot pays twice', async () => {
    using net = await startChain();
    const first = await net.result('requestAirdrop', bob.address, 1_000_000n);
    const second = await net.result('requestAirdrop', bob.address, 1_000_000n);
    expect(text(first)).not.toBe(text(second));
    expect(await net.balance(bob.address)).toBe(2_000_000n);
  });
});
