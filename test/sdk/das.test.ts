import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { publicKey } from '@metaplex-foundation/umi';
import { Connection } from '@solana/web3.js';
import { ASSETS, OWNER, TREE } from '../fakes/das-assets.ts';
import { startTiers } from './tiers.ts';
import { umiOn } from './umi-client.ts';

const ids = ASSETS.map(({ id }) => publicKey(id));
const [compressed = publicKey(TREE), plain = publicKey(TREE), burnt = publicKey(TREE)] = ids;
const owner = publicKey(OWNER);

type Rpc = ReturnType<typeof umiOn>['rpc'];
type Listed = Readonly<{ items: readonly Readonly<{ id: string }>[] }>;
const idsIn = ({ items }: Listed) => items.map(({ id }) => id);

let tiers: Awaited<ReturnType<typeof startTiers>>;
let rpc: Rpc;
/** The bodies that umi sent. */
const sent: string[] = [];
beforeAll(async () => {
  tiers = await startTiers();
  const connection = new Connection(tiers.url, {
    httpHeaders: { 'x-token': tiers.key() },
    fetchMiddleware: (info, init, fetch) => {
      sent.push(String(init?.body));
      fetch(info, init);
    },
  });
  rpc = umiOn(connection).rpc;
});
afterAll(async () => tiers[Symbol.asyncDispose]());

/** The last call of a method as the DAS server got it. */
function arrived(method: string): string {
  return tiers.das.seen.findLast((call) => call.method === method)?.text ?? 'nothing';
}

describe("umi's DAS client through the gateway", () => {
  test.each<[string, (das: Rpc) => Promise<unknown>, unknown]>([
    [
      'getAsset',
      async (das) =>
        (await das.getAsset({ assetId: plain, displayOptions: { showFungible: true } })).content.metadata
          .name,
      'Plain "quoted" \u00e9\u{1f31e}',
    ],
    [
      'getAssetProofs',
      async (das) => Object.keys(await das.getAssetProofs([compressed, burnt])),
      [compressed, burnt],
    ],
    [
      'getAssetsByOwner',
      async (das) => idsIn(await das.getAssetsByOwner({ owner, limit: 1, page: 2, displayOptions: {} })),
      [burnt],
    ],
    [
      'getAssetSignatures',
      async (das) => (await das.getAssetSignatures({ tree: publicKey(TREE), leaf_index: 8 })).total,
      1,
    ],
  ])('%s: its params arrive byte for byte, and its answer is read', async (method, call, wanted) => {
    expect(await call(rpc)).toEqual(wanted);
    const params = JSON.stringify(JSON.parse(sent.at(-1) ?? '').params);
    expect(sent.at(-1)).toContain(`"method":"${method}"`);
    expect(sent.at(-1)).toContain(`"params":${params}`);
    expect(arrived(method)).toContain(`"params":${params}`);
  });

  test("an error of the DAS server is what umi's client makes of it: the asset is not there", async () => {
    // The client reads `result` alone, so that the server's own words never reach its caller.
    await expect(rpc.getAsset(publicKey(TREE))).rejects.toThrow(`Asset not found: ${TREE}`);
    await expect(rpc.searchAssets({ isAgent: true })).rejects.toThrow('No assets found');
  });
});
