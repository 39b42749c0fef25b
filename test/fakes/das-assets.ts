/** An asset as the scripted DAS server knows it. Numbers that JavaScript would reprint otherwise are texts. */
export type Asset = Readonly<{
  id: string;
  interface: string;
  name: string;
  owner: string;
  authority: string;
  creator: string;
  collection: string;
  /** A float as serde prints it: `5.0` keeps its zero. */
  percent: string;
  basisPoints: number;
  /** A u64. */
  seq: string;
  leafId: number;
  tree: string | undefined;
  burnt: boolean;
}>;

export const OWNER = 'N4f6zftYsuu4yT7icsjLwh4i6pB1zvvKbseHj2NmSQw';
export const OTHER_OWNER = '9qUcfdADyrrTSetFjNjF9Ro7LKAqzJkzZV6WKLHfv5MU';
export const AUTHORITY = 'mRdta4rc2RtsxEUDYuvKLamMZAdW6qHcwuq866Skxxv';
export const CREATOR = '5XvhfmRjwXkGp3jHGmaKpqeerNYjkuZZBYLVQYdeVcRv';
export const COLLECTION = 'DGPTxgKaBPJv3Ng7dc9AFDpX6E7kgUMZEgyTm3VGWPW6';
export const TREE = 'DASPQfEAVcHp55eFmfstRduMT3dSfoTirFFsMHwUaWaz';
const HASH = '7QwPVrD2MfWVKZs2BFvLjTXqRzsmiGLeuwUaQ8RqMf4p';

const COMPRESSED = {
  interface: 'V1_NFT',
  name: 'Compressed',
  owner: OWNER,
  authority: AUTHORITY,
  creator: CREATOR,
  collection: COLLECTION,
  percent: '0.05',
  basisPoints: 500,
  seq: '9007199254740993',
  leafId: 7,
  tree: TREE,
  burnt: false,
};

/** The assets, in the order of their ids, as every list is sorted. */
export const ASSETS: readonly Asset[] = [
  { ...COMPRESSED, id: '2TWYbWTbyzRz6KZpnnzgFRULPYiLWJxW54hjiRjwRZVc' },
  {
    ...COMPRESSED,
    id: '4xGXwmCDcQjQ1mQyjBvcdYSMPWdiGV5LpAjmWnyRKLpC',
    name: 'Plain "quoted" \u00e9\u{1f31e}',
    owner: OTHER_OWNER,
    percent: '5.0',
    basisPoints: 50_000,
    seq: '0',
    tree: undefined,
  },
  {
    ...COMPRESSED,
    id: '8vw7tdLGE3FBjaetsJrZAarwsbc8UESsegiLyvWXxs5A',
    name: 'Burnt',
    percent: '0.07500000000000001',
    seq: '18446744073709551615',
    leafId: 8,
    burnt: true,
  },
  {
    ...COMPRESSED,
    id: 'F9Lw3ki3hJ7PF9HQXsBzoY8GyE6sPoEZZdXJBsTTD2rk',
    interface: 'FungibleToken',
    name: 'Fungible',
    owner: OTHER_OWNER,
    percent: '1e-7',
    basisPoints: 0,
    tree: undefined,
  },
];

/** The asset as the server prints it: members in its order, floats and u64 as Rust writes them. */
export function assetJson(asset: Asset): string {
  const { id, name, tree } = asset;
  const text = (value: string) => JSON.stringify(value);
  const hash = tree === undefined ? '""' : text(HASH);
  return (
    `{"interface":"${asset.interface}","id":"${id}","content":{"$schema":"https://schema.metaplex.com/nft1.0.json",` +
    `"json_uri":"https://assets.example/${id}.json","files":[{"uri":"https://assets.example/${id}.png","mime":"image/png"}],` +
    `"metadata":{"attributes":[{"value":"Blue","trait_type":"Background"}],"name":${text(name)},"symbol":"TEST","token_standard":"NonFungible"},` +
    `"links":{"image":"https://assets.example/${id}.png"}},` +
    `"authorities":[{"address":"${asset.authority}","scopes":["full"]}],` +
    `"compression":{"eligible":false,"compressed":${tree !== undefined},"data_hash":${hash},"creator_hash":${hash},"asset_hash":${hash},` +
    `"tree":${text(tree ?? '')},"seq":${asset.seq},"leaf_id":${asset.leafId}},` +
    `"grouping":[{"group_key":"collection","group_value":"${asset.collection}"}],` +
    `"royalty":{"royalty_model":"creators","target":null,"percent":${asset.percent},"basis_points":${asset.basisPoints},` +
    `"primary_sale_happened":false,"locked":false},"creators":[{"address":"${asset.creator}","share":100,"verified":true}],` +
    `"ownership":{"frozen":false,"delegated":false,"delegate":null,"ownership_model":"single","owner":"${asset.owner}"},` +
    `"supply":{"print_max_supply":18446744073709551615,"print_current_supply":0,"edition_nonce":null},"mutable":true,"burnt":${asset.burnt}}`
  );
}

/** The Merkle proof of a compressed asset. */
export function proofJson({ leafId, tree }: Asset): string {
  return `{"root":"${HASH}","proof":["${HASH}","${HASH}"],"node_index":${16384 + leafId},"leaf":"${HASH}","tree_id":"${tree}"}`;
}

/** The holding that a token account of this asset shows; its amount is a u64. */
export function tokenAccountJson({ id, owner }: Asset): string {
  return `{"address":"${HASH}","mint":"${id}","amount":18446744073709551615,"owner":"${owner}","frozen":false,"delegated_amount":0}`;
}

/** What happened to a compressed asset, newest first: signature and instruction. */
export function signatureJson(): string {
  return `["5nLi8m72bU6PBcz4Xrk23P6KTGy9ufF92kZiQXjTv9ELgkUxrNaiCGhMF4vh6RAcisw9DEQWJt9ogM3G2uCuwwV7","MintToCollectionV1"]`;
}

/** One printed edition of a master. */
export function editionJson(): string {
  return `{"mint_address":"${COLLECTION}","edition_address":"${TREE}","edition_number":18446744073709551615}`;
}
