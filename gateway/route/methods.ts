import type { Lane } from '../../shared/config/profiles.ts';

/** How much a call asks of a backend; it decides deadlines and which permits a call needs. */
export type MethodClass = 'light' | 'scan' | 'history' | 'write' | 'meta' | 'asset';

/** What the gateway knows of a method. `declared` methods are served only by a backend whose config names them. */
export type Method = Readonly<{ lane: Lane; class: MethodClass; declared: boolean }>;

/** Every method of Agave's HTTP interface (Agave `rpc/src/rpc.rs`), the asset standard, and known extensions. */
export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ...rows('state', 'light', [
    'getAccountInfo',
    'getMultipleAccounts',
    'getBalance',
    'getTokenSupply',
    'getTokenAccountBalance',
    'getSignatureStatuses',
    'getSlot',
    'getBlockHeight',
    'getTransactionCount',
    'getEpochInfo',
    'getLatestBlockhash',
    'isBlockhashValid',
    'getFeeForMessage',
    'getRecentPrioritizationFees',
    'simulateTransaction',
    'getVoteAccounts',
    'getBlockProduction',
    'getLeaderSchedule',
    'getSlotLeader',
    'getSlotLeaders',
  ]),
  ...rows('state', 'meta', [
    'getClusterNodes',
    'getIdentity',
    'getVersion',
    'getHealth',
    'getHighestSnapshotSlot',
    'getMaxRetransmitSlot',
    'getMaxShredInsertSlot',
    'getRecentPerformanceSamples',
    'getBlockCommitment',
    'getStakeMinimumDelegation',
    'getInflationGovernor',
    'getInflationRate',
    'getMinimumBalanceForRentExemption',
    'getGenesisHash',
    'getEpochSchedule',
    'getAgGenesisCert',
  ]),
  ...rows('scan', 'scan', [
    'getProgramAccounts',
    'getTokenAccountsByOwner',
    'getTokenAccountsByDelegate',
    'getTokenLargestAccounts',
    'getLargestAccounts',
    'getSupply',
  ]),
  ...rows('archive', 'history', [
    'getBlock',
    'getTransaction',
    'getSignaturesForAddress',
    'getBlocks',
    'getBlocksWithLimit',
    'getBlockTime',
    'getInflationReward',
  ]),
  ...rows('archive', 'meta', ['getFirstAvailableBlock', 'minimumLedgerSlot']),
  ...rows('send', 'write', ['sendTransaction']),
  ...rows('assets', 'asset', [
    'getAsset',
    'getAssets',
    'getAssetBatch',
    'getAssetProof',
    'getAssetProofs',
    'getAssetProofBatch',
    'getAssetsByOwner',
    'getAssetsByAuthority',
    'getAssetsByCreator',
    'getAssetsByGroup',
    'searchAssets',
    'getAssetSignatures',
    'getSignaturesForAsset',
    'getTokenAccounts',
    'getNftEditions',
    'getGrouping',
  ]),
  ...declared('scan', 'scan', [
    'getProgramAccountsV2',
    'getTokenAccountsByOwnerV2',
    'getTokenAccountsByMint',
  ]),
  ...declared('archive', 'history', ['getTransactionsForAddress', 'getTransfersByAddress']),
  ...declared('state', 'light', [
    'getPriorityFeeEstimate',
    'simulateBundle',
    'getBundleStatuses',
    'getInflightBundleStatuses',
    'getTipAccounts',
  ]),
  ...declared('send', 'write', ['sendBundle', 'requestAirdrop']),
]);

/** What a method that only a backend's config knows is taken for. */
export const DECLARED_UNKNOWN: Method = { lane: 'state', class: 'light', declared: true };

const SUBSCRIPTION =
  /^(account|block|logs|program|root|signature|slot|slotsUpdates|vote)(Subscribe|Unsubscribe)$/;

/** Whether the method belongs to the WebSocket interface, which this endpoint does not offer (spec 4.3.5). */
export function isSubscription(method: string): boolean {
  return SUBSCRIPTION.test(method);
}

function rows(lane: Lane, kind: MethodClass, names: readonly string[]): [string, Method][] {
  return names.map((name) => [name, { lane, class: kind, declared: false }]);
}

function declared(lane: Lane, kind: MethodClass, names: readonly string[]): [string, Method][] {
  return names.map((name) => [name, { lane, class: kind, declared: true }]);
}
