import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { getBase58Decoder } from '@solana/kit';
import { addressBytes } from '../../localnet/protocol/address.ts';
import type { Json } from '../../localnet/json/value.ts';
import { addressNumber, base64, list, object, ownedAccount, startChain, text } from './harness.ts';

const OWNER = addressNumber(1_000);
const base58 = getBase58Decoder();
/** Ten accounts; account n holds n bytes, counting from n. */
const accounts = Array.from({ length: 10 }, (_, n) => {
  return [
    addressNumber(n),
    ownedAccount(
      OWNER,
      Uint8Array.from({ length: n }, (_unused, index) => n + index),
    ),
  ] as const;
});

let net: Awaited<ReturnType<typeof startChain>>;
beforeAll(async () => {
  net = await startChain({ accounts: accounts.toReversed() });
});
afterAll(() => net[Symbol.dispose]());

async function found(config: Record<string, Json>): Promise<number[]> {
  const rows = list(await net.result('getProgramAccounts', OWNER, { encoding: 'base64', ...config }));
  return rows.map((row) => accounts.findIndex(([address]) => address === text(object(row)['pubkey'])));
}

describe('getProgramAccounts', () => {
  test('gives all accounts of a program in the order of their bytes, or in any when sortResults is false', async () => {
    const byBytes = accounts
      .map(([address], n) => ({ n, bytes: addressBytes(address) }))
      .sort((a, b) => Buffer.compare(a.bytes, b.bytes));
    expect(await found({})).toEqual(byBytes.map(({ n }) => n));
    expect((await found({ sortResults: false })).toSorted((a, b) => a - b)).toEqual([...accounts.keys()]);
  });

  test('encodes each account once in a form that refuses none', async () => {
    for (const encoding of ['jsonParsed', 'base64', 'base64+zstd']) {
      let reads = 0;
      const state = {
        ...ownedAccount(OWNER, new Uint8Array(1)),
        get executable() {
          reads++;
          return false;
        },
      };
      using own = await startChain({ accounts: [[addressNumber(1), state]] });
      const before = reads;
      await own.result('getProgramAccounts', OWNER, { encoding });
      expect([encoding, reads - before]).toEqual([encoding, 1]);
    }
  });

  test('is a bare list, and in a context with withContext', async () => {
    const config = { encoding: 'base64', filters: [{ dataSize: 2n }] };
    const row = {
      account: {
        data: [base64(Uint8Array.of(2, 3)), 'base64'],
        executable: false,
        lamports: 10_000_000n,
        owner: OWNER,
        rentEpoch: 18446744073709551615n,
        space: 2n,
      },
      pubkey: addressNumber(2),
    };
    expect(await net.result('getProgramAccounts', OWNER, config)).toEqual([row]);
    expect(await net.result('getProgramAccounts', OWNER, { ...config, withContext: true })).toEqual({
      context: { apiVersion: expect.any(String), slot: 449_999_999n },
      value: [row],
    });
  });

  test('of a program without accounts is an empty list', async () => {
    expect(await net.result('getProgramAccounts', addressNumber(77))).toEqual([]);
  });

  test.each([
    ['dataSize', [{ dataSize: 3n }], [3]],
    ['memcmp in base58', [{ memcmp: { offset: 0n, bytes: base58.decode(Uint8Array.of(4, 5)) } }], [4]],
    [
      'memcmp in base64',
      [{ memcmp: { offset: 1n, bytes: base64(Uint8Array.of(5, 6)), encoding: 'base64' } }],
      [4],
    ],
    ['memcmp of plain bytes', [{ memcmp: { offset: 0n, bytes: [9n] } }], [9]],
    ['memcmp beyond the end', [{ memcmp: { offset: 100n, bytes: base58.decode(Uint8Array.of(1)) } }], []],
    ['memcmp of nothing at the end', [{ memcmp: { offset: 9n, bytes: '' } }], [9]],
    ['two that must both hold', [{ dataSize: 4n }, { memcmp: { offset: 0n, bytes: [4n] } }], [4]],
    ['two that never both hold', [{ dataSize: 5n }, { memcmp: { offset: 0n, bytes: [4n] } }], []],
    ['tokenAccountState', ['tokenAccountState'], []],
  ] as [string, Json[], number[]][])('filters by %s', async (_, filters, numbers) => {
    expect(await found({ filters })).toEqual(numbers);
  });

  test('slices after it filters', async () => {
    const config = { encoding: 'base64', filters: [{ dataSize: 9n }], dataSlice: { offset: 0n, length: 0n } };
    expect(await net.result('getProgramAccounts', OWNER, config)).toMatchObject([
      { account: { data: ['', 'base64'], space: 9n } },
    ]);
  });
});
