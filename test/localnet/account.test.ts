import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { getBase58Decoder } from '@solana/kit';
import { addressBytes } from '../../localnet/protocol/address.ts';
import { API_VERSION } from '../../localnet/methods/method.ts';
import { addressNumber, base64, list, object, ownedAccount, startChain, text } from './harness.ts';
import type { Json } from '../../localnet/json/value.ts';

const OWNER = addressNumber(1_000);
const BIG = addressNumber(1);
const SMALL = addressNumber(2);
const bytes = Uint8Array.from({ length: 300 }, (_, index) => index);
const base58 = getBase58Decoder();
const SCANNED = addressNumber(1_001);
/** Ten accounts; account n holds n bytes, counting from n. */
const accounts = Array.from({ length: 10 }, (_, n) => {
  return [
    addressNumber(100 + n),
    ownedAccount(
      SCANNED,
      Uint8Array.from({ length: n }, (_unused, index) => n + index),
    ),
  ] as const;
});

let net: Awaited<ReturnType<typeof startChain>>;
beforeAll(async () => {
  net = await startChain({
    accounts: [
      [BIG, ownedAccount(OWNER, bytes, 18446744073709551615n)],
      [SMALL, ownedAccount(OWNER, bytes.subarray(0, 128))],
      ...accounts.toReversed(),
    ],
  });
});
afterAll(() => net[Symbol.dispose]());

const dataOf = async (address: string, config: Record<string, Json>) =>
  object(await net.valueOf('getAccountInfo', address, config))['data'];

describe('getAccountInfo', () => {
  test('prints u64 exactly, members by name, and the version in the context', async () => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"getAccountInfo","params":["${BIG}",{"encoding":"base64","dataSlice":{"offset":0,"length":3}}]}`;
    expect(await net.post(body)).toBe(
      `{"jsonrpc":"2.0","result":{"context":{"apiVersion":"${API_VERSION}","slot":449999999},"value":{"data":["AAEC","base64"],"executable":false,"lamports":18446744073709551615,"owner":"${OWNER}","rentEpoch":18446744073709551615,"space":300}},"id":1}\n`,
    );
  });

  test.each([
    [{ offset: 0n, length: 0n }, [0, 0]],
    [{ offset: 10n, length: 5n }, [10, 15]],
    [{ offset: 298n, length: 5n }, [298, 300]],
    [{ offset: 300n, length: 1n }, [300, 300]],
    [{ offset: 18446744073709551615n, length: 18446744073709551615n }, [300, 300]],
  ])('slices %p', async (dataSlice, [start, end]) => {
    expect(await dataOf(BIG, { encoding: 'base64', dataSlice })).toEqual([
      base64(bytes.subarray(start, end)),
      'base64',
    ]);
  });
});

async function found(config: Record<string, Json>): Promise<number[]> {
  const rows = list(await net.result('getProgramAccounts', SCANNED, { encoding: 'base64', ...config }));
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

  test('is a bare list, sliced after it was filtered, and in a context with withContext', async () => {
    const config = { encoding: 'base64', filters: [{ dataSize: 2n }] };
    const row = {
      account: {
        data: [base64(Uint8Array.of(2, 3)), 'base64'],
        executable: false,
        lamports: 10_000_000n,
        owner: SCANNED,
        rentEpoch: 18446744073709551615n,
        space: 2n,
      },
      pubkey: addressNumber(102),
    };
    expect(await net.result('getProgramAccounts', SCANNED, config)).toEqual([row]);
    const sliced = { ...config, dataSlice: { offset: 0n, length: 0n } };
    expect(await net.result('getProgramAccounts', SCANNED, sliced)).toMatchObject([
      { account: { data: ['', 'base64'], space: 2n } },
    ]);
    expect(await net.result('getProgramAccounts', addressNumber(77))).toEqual([]);
    expect(await net.result('getProgramAccounts', SCANNED, { ...config, withContext: true })).toEqual({
      context: { apiVersion: expect.any(String), slot: 449_999_999n },
      value: [row],
    });
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
});
