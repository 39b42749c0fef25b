import { describe, expect, test } from 'bun:test';
import {
  getAdvanceNonceAccountInstruction,
  getNonceEncoder,
  getTransferSolInstruction,
  NonceState,
  NonceVersion,
} from '@solana-program/system';
import { lamports } from '@solana/kit';
import { addressOf, SYSTEM_PROGRAM } from '../../localnet/protocol/address.ts';
import {
  addressNumber,
  alice,
  base64,
  bob,
  list,
  object,
  ownedAccount,
  startChain,
  systemAccount,
  CHECKED,
} from './harness.ts';
import { kitWire, signerOf } from './kit-transaction.ts';

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
    accounts: [
      [alice.address, systemAccount(10_000_000_000n)],
      [NONCE, ownedAccount(SYSTEM_PROGRAM, nonceData())],
    ],
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
    const first = base64(await wire(FIRST, 1_000_000n));
    await net.result('sendTransaction', first, CHECKED);
    expect(await net.balance(bob.address)).toBe(1_000_000n);
    expect(nonce()).not.toBe(FIRST);
    expect(await net.preflightError(await wire(FIRST, 2_000_000n))).toMatchObject({
      data: { err: 'BlockhashNotFound' },
    });
    await net.send(await wire(nonce(), 2_000_000n), CHECKED);
    expect(await net.balance(bob.address)).toBe(3_000_000n);
  });

  test('is used up by a transaction that fails', async () => {
    using nonced = await startNonced();
    const { net, nonce, wire } = nonced;
    const signature = await net.send(await wire(FIRST, 10n ** 15n));
    const [status] = list(await net.valueOf('getSignatureStatuses', [signature]));
    expect(object(status)['err']).toEqual({ InstructionError: [1n, { Custom: 1n }] });
    expect(nonce()).not.toBe(FIRST);
    expect(await net.balance(alice.address)).toBe(9_999_995_000n);
  });

  test('is not accepted from another authority', async () => {
    using nonced = await startNonced();
    await nonced.net.transfer(alice, bob.address, 1_000_000_000n);
    const source = await signerOf(bob);
    const wire = await kitWire(bob, FIRST, [
      getAdvanceNonceAccountInstruction({ nonceAccount: NONCE, nonceAuthority: source }),
    ]);
    expect(await nonced.net.preflightError(wire)).toMatchObject({
      data: { err: 'BlockhashNotFound' },
    });
  });
});
