import { afterAll, beforeAll, expect, test } from 'bun:test';
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

const error = (code: number, message: string) => ({ code, message });

test.each<[string, unknown, unknown]>([
  ['an object with options', { id: compressed, options: { showFungible: true } }, undefined],
  ['options by their other name', { id: compressed, displayOptions: {} }, undefined],
  ['a null where a member may be left out', { id: compressed, options: null }, undefined],
  ['a list of one object', [{ id: compressed }], undefined],
  ['a list in order', [compressed, {}], undefined],
  [
    'an unknown member',
    { id: compressed, foo: 1 },
    error(-32602, 'unknown field `foo`, expected `id` or `options`'),
  ],
  ['a missing member', {}, error(-32602, 'missing field `id`')],
])('params by name are taken or refused as serde does: %s', async (_form, params, refused) => {
  const answer = JSON.parse(await ask('getAsset', params));
  expect(answer.error).toEqual(refused);
  expect(answer.result?.id).toBe(refused === undefined ? compressed : undefined);
});

test('answers hold u64 numbers and floats as Rust prints them, and the id verbatim', async () => {
  const texts = await Promise.all(ASSETS.map(({ id }) => ask('getAsset', { id }, '18446744073709551615')));
  expect(texts[0]).toContain('"seq":9007199254740993,');
  expect(texts[1]).toContain('"percent":5.0,');
  expect(texts[2]).toContain('"percent":0.07500000000000001,');
  expect(texts[3]).toContain('"percent":1e-7,');
  for (const text of texts) {
    expect(JSON.stringify(JSON.parse(text))).not.toBe(text); // JavaScript would print it otherwise
    expect(text).toEndWith('"id":18446744073709551615}');
  }
});

test('batches keep places, and proofs are a map', async () => {
  const { result } = JSON.parse(await ask('get_asset_batch', { ids: [plain, TREE, compressed] }));
  expect(result.map((asset: { id: string } | null) => asset?.id)).toEqual([plain, undefined, compressed]);
  const proofs = JSON.parse(await ask('getAssetProofs', { ids: [compressed, TREE] })).result;
  expect(proofs).toEqual({ [compressed]: expect.objectContaining({ tree_id: TREE }), [TREE]: null });
});

const [first, second, third, fourth] = ASSETS.map(({ id }) => id);
test.each<[string, object, unknown]>([
  ['getAssetsByOwner', { ownerAddress: OTHER_OWNER }, [second, fourth]],
  ['getAssetsByGroup', { groupKey: 'collection', groupValue: COLLECTION }, [first, second, third, fourth]],
  ['getAssetsByGroup', { groupKey: 'collection', groupValue: OWNER }, []],
  ['searchAssets', { grouping: ['collection', COLLECTION], compressed: true }, [first, third]],
  ['searchAssets', { ownerAddress: OWNER, limit: 1, page: 2 }, [third]],
  ['getSlot', {}, error(-32601, 'Method not found')],
])('the list %s %j', async (method, params, ids) => expect(await idsOf(method, params)).toEqual(ids));

test('no name stands for two methods, and the DAS client of umi reads an answer', async () => {
  const names = DAS_METHODS.flatMap((method) => method.names);
  expect(new Set(names).size).toBe(names.length);
  const asset = await umiOn(new Connection(das.url)).rpc.getAsset(publicKey(compressed));
  expect(asset.compression.tree).toBe(publicKey(TREE));
});
