import { integer } from './kinds.ts';
import type { Table } from './table.ts';

/** Credits by method; `default` is for every other one, unknown methods included. */
export type Prices = Readonly<{ default: number; methods: ReadonlyMap<string, number> }>;

/** The credit costs when the config has no `[credits]` table; a row of `[credits.methods]` replaces or adds one. */
export const PRICES_BY_DEFAULT: Readonly<Record<string, number>> = {
  getMultipleAccounts: 2,
  simulateTransaction: 2,
  sendTransaction: 2,
  getVoteAccounts: 2,
  getClusterNodes: 2,
  getBlockProduction: 2,
  getTokenAccountsByOwner: 10,
  getTokenAccountsByDelegate: 10,
  getTokenLargestAccounts: 10,
  getTokenAccountsByMint: 20,
  getProgramAccounts: 50,
  getProgramAccountsV2: 10,
  getTokenAccountsByOwnerV2: 5,
  getSupply: 20,
  getLargestAccounts: 50,
  getBlock: 10,
  getTransaction: 10,
  getSignaturesForAddress: 10,
  getBlocks: 10,
  getBlocksWithLimit: 10,
  getBlockTime: 5,
  getInflationReward: 20,
  getTransactionsForAddress: 50,
  getTransfersByAddress: 50,
  getAsset: 10,
  getAssetProof: 10,
  getAssets: 20,
  getAssetBatch: 20,
  getAssetProofs: 20,
  getAssetProofBatch: 20,
  getAssetsByOwner: 20,
  getAssetsByAuthority: 20,
  getAssetsByCreator: 20,
  getAssetsByGroup: 20,
  searchAssets: 20,
  getAssetSignatures: 10,
  getSignaturesForAsset: 10,
  getTokenAccounts: 10,
  getNftEditions: 10,
  getGrouping: 10,
  simulateBundle: 5,
  sendBundle: 10,
};

const DEFAULT_PRICE = 1;

/** All prices: those of the config over the defaults. A price of 0 makes a method free. */
export function pricesFrom(root: Table): Prices {
  const table = root.table('credits');
  const price = integer(0, 1_000_000_000, '50');
  const standard = table.takeOr('default', price, DEFAULT_PRICE);
  const methods = new Map(Object.entries(PRICES_BY_DEFAULT));
  const rows = table.table('methods');
  for (const method of rows.keys()) {
    const credits = rows.take(method, price);
    if (credits !== undefined) methods.set(method, credits);
  }
  table.close();
  return { default: standard, methods };
}
