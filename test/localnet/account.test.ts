import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { getBase58Decoder } from '@solana/kit';
import { API_VERSION } from '../../localnet/methods/method.ts';
import { addressNumber, base64, list, object, ownedAccount, startChain, text } from './harness.ts';
import type { Json } from '../../localnet/json/value.ts';

const OWNER = addressNumber(1_000);
const BIG = addressNumber(1);
const SMALL = addressNumber(2);
const bytes = Uint8Array.from({ length: 300 }, (_, index) => index);
const base58 = getBase58Decoder();

let net: Awaited<ReturnType<typeof startChain>>;
beforeAll(async () => {
  net = await startChain({
    accounts: [
      [BIG, ownedAccount(OWNER, bytes, 18446744073709551615n)],
      [SMALL, ownedAccount(OWNER, bytes.subarray(0, 128))],
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
    ['nothing: a bare base58 text', {}, base58.decode(bytes.subarray(0, 128))],
    ['binary', { encoding: 'binary' }, base58.decode(bytes.subarray(0, 128))],
    ['base58', { encoding: 'base58' }, [base58.decode(bytes.subarray(0, 128)), 'base58']],
    ['base64', { encoding: 'base64' }, [base64(bytes.subarray(0, 128)), 'base64']],
    [
      'jsonParsed, for an owner that is not parsed, beside a member that is not known',
      { encoding: 'jsonParsed', unknown: { deep: [1n] } },
      [base64(bytes.subarray(0, 128)), 'base64'],
    ],
  ])('with the encoding %s', async (_, config, data) => {
    expect(await dataOf(SMALL, config)).toEqual(data);
  });

  test('compresses with zstd', async () => {
    const [data, encoding] = list(await dataOf(BIG, { encoding: 'base64+zstd' }));
    expect(encoding).toBe('base64+zstd');
    expect(new Uint8Array(Bun.zstdDecompressSync(Buffer.from(text(data), 'base64')))).toEqual(bytes);
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

  test('gives null for an account that does not exist', async () => {
    expect(await net.valueOf('getAccountInfo', addressNumber(3))).toBeNull();
    expect(await net.valueOf('getBalance', addressNumber(3))).toBe(0n);
  });
});

describe('getMultipleAccounts', () => {
  test('keeps positions, and base64 is its default', async () => {
    expect(await net.valueOf('getMultipleAccounts', [addressNumber(3), SMALL, addressNumber(3)])).toEqual([
      null,
      expect.objectContaining({ data: [base64(bytes.subarray(0, 128)), 'base64'] }),
      null,
    ]);
  });
});

describe('the node and the cluster', () => {
  test.each([
    ['getHealth', [], 'ok'],
    ['getFirstAvailableBlock', [], 0n],
    ['minimumLedgerSlot', [], 0n],
    ['getMinimumBalanceForRentExemption', [0n], 890_880n],
    ['getMinimumBalanceForRentExemption', [165n], 2_039_280n],
    [
      'getEpochSchedule',
      [],
      {
        firstNormalEpoch: 0n,
        firstNormalSlot: 0n,
        leaderScheduleSlotOffset: 432_000n,
        slotsPerEpoch: 432_000n,
        warmup: false,
      },
    ],
    [
      'getEpochInfo',
      [{ commitment: 'processed' }],
      {
        absoluteSlot: 450_000_000n,
        blockHeight: 450_000_000n,
        epoch: 1041n,
        slotIndex: 288_000n,
        slotsInEpoch: 432_000n,
        transactionCount: 0n,
      },
    ],
  ] as [string, Json[], Json][])('%s %p', async (method, params, answer) => {
    expect(await net.result(method, ...params)).toEqual(answer);
  });

  test('names its version, its identity and its genesis', async () => {
    expect(await net.result('getVersion')).toEqual({
      'feature-set': expect.any(BigInt),
      'solana-core': API_VERSION,
    });
    expect(object(await net.result('getIdentity'))['identity']).toMatch(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
    expect(await net.result('getGenesisHash')).toMatch(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
  });
});
