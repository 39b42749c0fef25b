/*
 * A DAS server as Metaplex's reference implementation is one (digital-asset-rpc-infrastructure, das_api/src):
 * jsonrpsee with strict params by name, snake_case methods with camel-case aliases, serde's sentences.
 */
import { type SeenCall, startBackend } from './backend.ts';
import {
  type Asset,
  assetJson,
  ASSETS,
  COLLECTION,
  editionJson,
  proofJson,
  signatureJson,
  tokenAccountJson,
} from './das-assets.ts';

type Params = Readonly<Record<string, unknown>>;
/** A refusal in the server's form: -32602 for params, -32000 for what it finds wrong itself. */
class Refused extends Error {
  constructor(
    readonly code: -32602 | -32000,
    message: string,
  ) {
    super(message);
  }
}

/** A method with all its names, the members of its params, and its answer. */
type Method = Readonly<{
  names: readonly string[];
  required: readonly string[];
  optional: readonly string[];
  answer(params: Params): string;
}>;

const LIMIT = 1_000;
const PAGING = ['limit', 'page', 'before', 'after', 'cursor'];
const LISTING = ['sortBy', ...PAGING, 'options'];
const SEARCH = (
  'negate conditionType interface tokenType ownerAddress ownerType creatorAddress creatorVerified ' +
  'authorityAddress grouping delegate frozen supply supplyMint compressed compressible royaltyTargetType ' +
  'royaltyTarget royaltyAmount burnt jsonUri name'
).split(' ');

const method = (
  names: string,
  required: string,
  optional: readonly string[],
  answer: Method['answer'],
): Method => ({
  names: names.split(' '),
  required: required.split(' ').filter(Boolean),
  optional,
  answer,
});

const has = (condition: boolean, json: () => string) => (condition ? json() : 'null');

/** Every method, with all the names it goes by. */
export const DAS_METHODS: readonly Method[] = [
  method('get_asset getAsset', 'id', ['options'], ({ id }) => assetJson(assetOf(id))),
  method('get_assets getAssets get_asset_batch getAssetBatch', 'ids', ['options'], ({ ids }) =>
    list(batchOf(ids).map((id) => has(isKnown(id), () => assetJson(assetOf(id))))),
  ),
  method('get_asset_proof getAssetProof', 'id', [], ({ id }) => proofJson(compressedOf(id))),
  method('get_asset_proofs getAssetProofs get_asset_proof_batch getAssetProofBatch', 'ids', [], ({ ids }) => {
    const proofOf = (id: unknown) => has(isKnown(id), () => proofJson(compressedOf(id)));
    return `{${batchOf(ids).map((id) => `${JSON.stringify(id)}:${proofOf(id)}`)}}`;
  }),
  method('get_assets_by_owner getAssetsByOwner', 'ownerAddress', LISTING, listed),
  method('getAssetsByAuthority', 'authorityAddress', LISTING, listed),
  method('get_assets_by_creator getAssetsByCreator', 'creatorAddress', ['onlyVerified', ...LISTING], listed),
  method('get_assets_by_group getAssetsByGroup', 'groupKey groupValue', LISTING, listed),
  method('search_assets searchAssets', '', [...SEARCH, ...LISTING], listed),
  method(
    'get_asset_signatures getAssetSignatures get_signatures_for_asset getSignaturesForAsset',
    '',
    ['id', 'tree', 'leafIndex', 'sortDirection', ...PAGING],
    (params) => {
      const { id, tree, leafIndex } = params;
      const isFound = ASSETS.some((asset) =>
        id === undefined ? asset.tree === tree && asset.leafId === leafIndex : asset.id === id,
      );
      return page(params, 'items', isFound ? [signatureJson()] : []);
    },
  ),
  method(
    'get_token_accounts getTokenAccounts',
    '',
    ['ownerAddress', 'mintAddress', ...PAGING, 'options'],
    (params) => {
      const { ownerAddress, mintAddress } = params;
      const held = ASSETS.filter(
        ({ id, owner }) => (ownerAddress ?? owner) === owner && (mintAddress ?? id) === id,
      );
      return page(params, 'token_accounts', held.map(tokenAccountJson));
    },
  ),
  method('get_nft_editions getNftEditions', 'mintAddress', PAGING, (params) =>
    page(params, 'editions', [editionJson()], `"master_edition_address":"${COLLECTION}","supply":1`),
  ),
  method('get_grouping getGrouping', 'groupKey groupValue', [], ({ groupValue }) => {
    const size = ASSETS.filter(({ collection }) => collection === groupValue).length;
    return `{"group_key":"collection","group_name":"Tests","group_size":${size}}`;
  }),
];

/** The server on a free port. `seen` holds what arrived, in the caller's bytes. */
export function startDas() {
  return startBackend(answerTo);
}

function answerTo(call: SeenCall): Response {
  const found = DAS_METHODS.find(({ names }) => names.includes(call.method));
  if (found === undefined) return answered(call, 'error', '{"code":-32601,"message":"Method not found"}');
  try {
    return answered(call, 'result', found.answer(named(found, call.params)));
  } catch (cause) {
    if (!(cause instanceof Refused)) throw cause;
    const { code, message } = cause;
    return answered(call, 'error', JSON.stringify({ code, message }));
  }
}

/** jsonrpsee's form: the id last, no line feed at the end. */
function answered({ id }: SeenCall, member: 'result' | 'error', json: string): Response {
  return new Response(`{"jsonrpc":"2.0","${member}":${json},"id":${id}}`, {
    headers: { 'content-type': 'application/json; charset=utf-8' },
  });
}

/** The params by name, whichever of the forms they came in: an object, a list of one object, or a list in order. */
function named({ required, optional }: Method, params: unknown): Params {
  const members = [...required, ...optional];
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(asObject(members, params))) {
    const member = name === 'displayOptions' && members.includes('options') ? 'options' : name;
    if (!members.includes(member)) throw new Refused(-32602, `unknown field \`${name}\``);
    if (value !== null) given[member] = value;
  }
  return given;
}

function asObject(members: readonly string[], params: unknown): object {
  if (Array.isArray(params)) {
    const only: unknown = params.length === 1 ? params[0] : undefined;
    if (typeof only === 'object' && only !== null && !Array.isArray(only)) return only;
    return Object.fromEntries(params.map((value, i) => [members[i] ?? `${i}`, value]));
  }
  return typeof params === 'object' && params !== null ? params : {};
}

function isKnown(id: unknown): boolean {
  return ASSETS.some((asset) => asset.id === id);
}

function assetOf(id: unknown): Asset {
  const asset = ASSETS.find((known) => known.id === id);
  if (asset === undefined) throw new Refused(-32000, 'Database Error: RecordNotFound Error: Asset Not Found');
  return asset;
}

function compressedOf(id: unknown): Asset {
  const asset = assetOf(id);
  if (asset.tree === undefined)
    throw new Refused(-32000, 'Database Error: RecordNotFound Error: Asset Proof Not Found');
  return asset;
}

function batchOf(ids: unknown): readonly unknown[] {
  return Array.isArray(ids) ? ids : [];
}

/** The assets that fit, as one page. */
function listed(params: Params): string {
  const fits = (asset: Asset) =>
    Object.entries(traitsOf(asset)).every(
      ([name, value]) => params[name] === undefined || Bun.deepEquals(params[name], value),
    );
  return page(params, 'items', ASSETS.filter(fits).map(assetJson));
}

function traitsOf(asset: Asset): Params {
  return {
    ownerAddress: asset.owner,
    authorityAddress: asset.authority,
    creatorAddress: asset.creator,
    groupKey: 'collection',
    groupValue: asset.collection,
    grouping: ['collection', asset.collection],
    interface: asset.interface,
    compressed: asset.tree !== undefined,
    burnt: asset.burnt,
    name: asset.name,
  };
}

/** One page of `rows` under `member`; only pages by number are cut, as no test walks by cursor. */
function page(params: Params, member: string, rows: readonly string[], more = ''): string {
  const limit = typeof params['limit'] === 'number' ? params['limit'] : LIMIT;
  const number = typeof params['page'] === 'number' ? params['page'] : 1;
  const shown = rows.slice((number - 1) * limit, number * limit);
  const extra = more === '' ? '' : `${more},`;
  return `{"total":${shown.length},"limit":${limit},"page":${number},${extra}"${member}":${list(shown)}}`;
}

function list(rows: readonly string[]): string {
  return `[${rows.join()}]`;
}
