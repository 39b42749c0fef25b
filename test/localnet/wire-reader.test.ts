import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createWireReader, readTransaction } from '../../localnet/protocol/transaction.ts';
import { transferWire } from '../../localnet/protocol/keypair.ts';
import { addressNumber, alice, base64, bob, startChain, systemAccount } from './harness.ts';

const BLOCKHASH = addressNumber(3);
const good = transferWire(alice, bob.address, 1_000_000n, BLOCKHASH);

test('a count has one to three bytes, as few as possible, and is a u16', () => {
  const count = (...bytes: number[]) => createWireReader(Uint8Array.from(bytes)).count();
  const good = [[0], [0x7f], [0x80, 1], [0xff, 0x7f], [0x80, 0x80, 1], [0xff, 0xff, 3]];
  expect(good.map((bytes) => count(...bytes))).toEqual([0, 127, 128, 16_383, 16_384, 65_535]);
  const bad = [[], [0x80], [0x80, 0], [0xff, 0x80, 0], [0xff, 0xff, 4], [0x80, 0x80, 0x80, 1]];
  for (const bytes of bad) expect(() => count(...bytes)).toThrow();
});

describe('readTransaction', () => {
  test('reads a transaction and leaves trailing bytes out', () => {
    const read = readTransaction(Buffer.concat([good, Uint8Array.of(1, 2, 3)]));
    if (read.kind !== 'read') throw new Error(read.reason);
    expect(new Uint8Array(read.transaction.wire)).toEqual(new Uint8Array(good));
    expect(read.transaction).toMatchObject({
      version: 'legacy',
      signers: 1,
      recentBlockhash: BLOCKHASH,
      lookups: [],
    });
    expect(read.transaction.staticKeys.slice(0, 2)).toEqual([alice.address, bob.address]);
  });

  test('refuses every transaction that ends too early', () => {
    for (let length = 0; length < good.length; length += 1) {
      expect(readTransaction(good.subarray(0, length)).kind).toBe('malformed');
    }
  });

  test('refuses a transaction without signatures, and versions it does not know', () => {
    expect(readTransaction(Uint8Array.of(0)).kind).toBe('malformed');
    const versioned = new Uint8Array(good);
    versioned[65] = 0x81;
    expect(readTransaction(versioned)).toEqual({
      kind: 'malformed',
      reason: 'transaction version 1 is not supported',
    });
  });
});

describe('whatever bytes a client sends', () => {
  test('are answered, and neither fault nor end the process', async () => {
    using net = await startChain({ accounts: [[alice.address, systemAccount(10n ** 15n)]] });
    const mutation = fc.tuple(fc.nat(good.length - 1), fc.nat(255));
    const ways = fc.constantFrom('sendTransaction', 'simulateTransaction');
    await fc.assert(
      fc.asyncProperty(
        fc.array(mutation, { maxLength: 6 }),
        ways,
        fc.boolean(),
        async (mutations, method, skipPreflight) => {
          const blockhash = net.blockhash();
          const wire = transferWire(alice, bob.address, 1_000_000n, blockhash);
          for (const [at, value] of mutations) wire[at] = value;
          const answer = await net.call(method, base64(wire), { encoding: 'base64', skipPreflight });
          expect('result' in answer || 'error' in answer).toBe(true);
        },
      ),
      { numRuns: 1_500, seed: 20_260_101 },
    );
    expect(net.faults).toEqual([]);
  });

  test('as a body are answered too', async () => {
    using net = await startChain();
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.json(), fc.string()), async (body) => {
        expect((await net.request(body)).status).toBe(200);
      }),
      { numRuns: 500, seed: 20_260_101 },
    );
    expect(net.faults).toEqual([]);
  });
});
