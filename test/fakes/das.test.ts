import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { publicKey } from '@metaplex-foundation/umi';
import { Connection } from '@solana/web3.js';
import { umiOn } from '../sdk/umi-client.ts';
import { DAS_METHODS, startDas } from './das.ts';
import { ASSETS, COLLECTION, OTHER_OWNER, OWNER, TREE } from './das-assets.ts';

const [{ id: compressed } = { id: '' }, { id: plain } = { id: '' }] = ASSETS;

let das: ReturnType<typeof startDas>;
beforeAll(() => void (das = startDas()));
afterAll(async () => das[Symbol.asyncDispose]());

async function ask(method: string, params: unknown, id = '1'): Promise<string> {
  const body = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${JSON.stringify(params)}}`;
  const headers = { 'content-type': 'application/json' };
  return (await fetch(das.url, { method: 'POST', headers, body })).text();
}

async function idsOf(method: string, params: unknown): Promise<unknown> {
  const { result, error } = JSON.parse(await ask(method, params));
  return error ?? result.items.map(({ id }: { id: string }) => id);
}

describe('params by name', () => {
  test.each([
    ['an object', { id: compressed }],
    ['an object with options', { id: compressed, options: { showFungible: true } }],
    ['options by their other name', { id: compressed, displayOptions: {} }],
    ['a null where a member may be left out', { id: compressed, options: null }],
    ['a list of one object', [{ id: compressed }]],
    ['a list in order', [compressed, {}]],
  ])('%s', async (_form, params) => {
    expect(JSON.parse(await ask('getAsset', params)).result.id).toBe(compressed);
  });

  test.each<[string, unknown, number, string]>([
    [
      'an unknown member',
      { id: compressed, foo: 1 },
      -32602,
      'unknown field `foo`, expected `id` or `options`',
    ],
    ['a missing member', {}, -32602, 'missing field `id`'],
    [
      'a member twice',
      { id: compressed, options: {}, displayOptions: {} },
      -32602,
      'duplicate field `options`',
    ],
    ['an unknown asset', { id: TREE }, -32000, 'Database Error: RecordNotFound Error: Asset Not Found'],
  ])('%s is refused', async (_what, params, code, message) => {
    expect(JSON.parse(await ask('getAsset', params)).error).toEqual({ code, message });
  });

  test('a method that it has not is refused', async () => {
    expect(JSON.parse(await ask('getSlot', [])).error).toEqual({ code: -32601, message: 'Method not found' });
  });
});

describe('the bytes of its answers', () => {
  test('hold u64 numbers and floats as Rust prints them, and the id verbatim', async () => {
    const texts = await Promise.all(ASSETS.map(({ id }) => ask('getAsset', { id }, '18446744073709551615')));
    expect(texts[0]).toContain('"seq":9007199254740993,');
    expect(texts[1]).toContain('"percent":5.0,');
    expect(texts[2]).toContain('"percent":0.07500000000000001,');
    expect(texts[3]).toContain('"percent":1e-7,');
    for (const text of texts) {
      expect(() => JSON.parse(text)).not.toThrow();
      expect(JSON.stringify(JSON.parse(text))).not.toBe(text); // JavaScript would print it otherwise
      expect(text).toEndWith('"id":18446744073709551615}');
    }
  });
});

describe('batches', () => {
  test.each(['getAssets', 'getAssetBatch', 'get_assets', 'get_asset_batch'])(
    '%s keeps places',
    async (name) => {
      const { result } = JSON.parse(await ask(name, { ids: [plain, TREE, compressed] }));
      expect(result.map((asset: { id: string } | null) => asset?.id)).toEqual([plain, undefined, compressed]);
    },
  );
  test('a thousand ids pass, and one more does not', async () => {
    const ids = (length: number) => ({ ids: Array.from({ length }, () => compressed) });
    expect(JSON.parse(await ask('getAssets', ids(1_000))).result).toHaveLength(1_000);
    expect(JSON.parse(await ask('getAssets', ids(1_001))).error).toEqual({
      code: -32000,
      message: 'Validation Error: Batch size should not be greater than 1000',
    });
  });
  test('proofs are a map, with null for an asset that is unknown', async () => {
    const { result } = JSON.parse(await ask('getAssetProofs', { ids: [compressed, TREE] }));
    expect(Object.keys(result)).toEqual([compressed, TREE]);
    expect(result[compressed].tree_id).toBe(TREE);
    expect(result[TREE]).toBeNull();
  });
});

describe('lists', () => {
  const [first, second, third, fourth] = ASSETS.map(({ id }) => id);
  test.each<[string, object, unknown]>([
    ['getAssetsByOwner', { ownerAddress: OTHER_OWNER }, [second, fourth]],
    ['getAssetsByGroup', { groupKey: 'collection', groupValue: COLLECTION }, [first, second, third, fourth]],
    ['getAssetsByGroup', { groupKey: 'collection', groupValue: OWNER }, []],
    ['searchAssets', { burnt: true }, [third]],
    ['searchAssets', { burnt: true, negate: true }, [first, second, fourth]],
    ['searchAssets', { burnt: true, interface: 'FungibleToken', conditionType: 'any' }, [third, fourth]],
    ['searchAssets', { grouping: ['collection', COLLECTION], compressed: true }, [first, third]],
    ['searchAssets', { ownerAddress: OWNER, limit: 1, page: 2 }, [third]],
  ])('%s %j', async (method, params, ids) => expect(await idsOf(method, params)).toEqual(ids));

  test('two ways of paging at once are refused', async () => {
    expect(await idsOf('getAssetsByOwner', { ownerAddress: OWNER, page: 1, cursor: 'x' })).toEqual({
      code: -32000,
      message: 'Pagination Error. Only one pagination parameter supported per query.',
    });
  });
});

test('no name stands for two methods, and the DAS client of umi reads an answer', async () => {
  const names = DAS_METHODS.flatMap((method) => method.names);
  expect(new Set(names).size).toBe(names.length);
  const asset = await umiOn(new Connection(das.url)).rpc.getAsset(publicKey(compressed));
  expect(asset.compression.tree).toBe(publicKey(TREE));
});
