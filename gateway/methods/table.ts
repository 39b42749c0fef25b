import type { Lane } from '../../shared/config/profiles.ts';

/** How much a call asks of a backend; it decides deadlines and which permits a call needs. */
export type MethodClass = 'light' | 'scan' | 'history' | 'write' | 'meta' | 'asset';

/** What the gateway knows of a method. `declared` methods are served only by a backend whose config names them. */
export type Method = Readonly<{
  lane: Lane;
  class: MethodClass;
  declared: boolean;
  /** One attempt at one backend nearly always answers it: a read without a rule of its own. */
  direct: boolean;
  /** Identical calls that are under way at the same moment may have one answer: reads that are no caller's own. */
  shared?: boolean;
  /** Where the slot stands whose finality makes a result one that never changes; `fixed`: it is the chain's own. */
  immutable?: 'slot-in-params' | 'slot-in-result' | 'fixed' | undefined;
  /** The method that it is another name of, and is priced as. */
  like?: string;
}>;

/** Methods whose answer is also made by a rule of ours (`respond/rules.ts`). */
const RULED = new Set<string>(['getSignatureStatuses', 'getHealth']);

/**
 * Reads of the present state that tell their slot, so that it can be seen whether the answer is new enough, and what
 * a node returns to every caller alike. Not those whose moment matters: statuses, simulations, fees of a message.
 */
const SHARED = new Set<string>([
  'getAccountInfo',
  'getMultipleAccounts',
  'getBalance',
  'getTokenSupply',
  'getTokenAccountBalance',
  'getSlot',
  'getLatestBlockhash',
  'getVersion',
  'getInflationGovernor',
  'getInflationRate',
  'getMinimumBalanceForRentExemption',
  'getStakeMinimumDelegation',
]);

/** Methods whose results may be kept (`upstream/cache.ts`). */
const IMMUTABLE = new Map<string, Method['immutable']>([
  ['getBlock', 'slot-in-params'],
  ['getBlockTime', 'slot-in-params'],
  ['getTransaction', 'slot-in-result'],
  ['getGenesisHash', 'fixed'],
  ['getEpochSchedule', 'fixed'],
]);

const ASSET_METHODS = [
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
] as const;

/** Asset methods that came after the server had changed its names. */
const NEVER_IN_SNAKE_CASE = new Set<string>(['getAssetsByAuthority']);

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
  ...rows('assets', 'asset', ASSET_METHODS),
  ...ASSET_METHODS.flatMap(originally),
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
export const DECLARED_UNKNOWN: Method = { lane: 'state', class: 'light', declared: true, direct: true };

/**
 * The deadline of a call's first byte, and of the last one of an answer that is held until it is whole; it ends before
 * the listener's own idle limit, so that the caller gets a 503. A scan begins only when it has been made (Agave `rpc.rs`).
 */
export function deadlinesMs(idleMs: number): Readonly<Record<MethodClass, number>> {
  const short = Math.min(30_000, 0.9 * idleMs);
  const long = Math.min(60_000, 0.9 * idleMs);
  const scan = Math.min(240_000, 0.9 * idleMs);
  return { light: short, meta: short, write: short, asset: long, history: long, scan };
}

const SUBSCRIPTION =
  /^(account|block|logs|program|root|signature|slot|slotsUpdates|vote)(Subscribe|Unsubscribe)$/;

/** Whether the method belongs to the WebSocket interface, which this endpoint does not offer (spec 4.3.5). */
export function isSubscription(method: string): boolean {
  return SUBSCRIPTION.test(method);
}

function isDirect(lane: Lane, name: string): boolean {
  return (lane === 'state' || lane === 'assets') && !RULED.has(name) && !IMMUTABLE.has(name);
}

function rows(lane: Lane, kind: MethodClass, names: readonly string[]): [string, Method][] {
  return names.map((name) => {
    const direct = isDirect(lane, name);
    const [shared, immutable] = [SHARED.has(name), IMMUTABLE.get(name)];
    return [name, { lane, class: kind, declared: false, direct, shared, immutable }];
  });
}

/** The name in snake case that the asset server knew the method by first, and still does (das_api `builder.rs`). */
function originally(like: string): [string, Method][] {
  if (NEVER_IN_SNAKE_CASE.has(like)) return [];
  const name = like.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return [[name, { lane: 'assets', class: 'asset', declared: false, direct: true, like }]];
}

function declared(lane: Lane, kind: MethodClass, names: readonly string[]): [string, Method][] {
  return names.map((name) => [name, { lane, class: kind, declared: true, direct: isDirect(lane, name) }]);
}
