import type { GatewayConfig } from './config.ts';
import type { Lane } from './profiles.ts';

/** How much a call asks of a backend; it decides deadlines and which permits a call needs. */
export type MethodClass = 'light' | 'scan' | 'history' | 'write' | 'meta' | 'asset';

/** What the gateway knows of a method. `declared` methods are served only by a backend whose config names them. */
export type Method = Readonly<{
  lane: Lane;
  class: MethodClass;
  declared: boolean;
  /** One attempt at one backend nearly always answers it: a read without a rule of ours. */
  direct: boolean;
  /** Identical calls that are under way at the same moment may have one answer: reads that are no caller's own. */
  shared?: boolean;
  /** Where the slot stands whose finality makes a result one that never changes; `fixed`: it is the chain's own. */
  immutable?: 'slot-in-params' | 'slot-in-result' | 'fixed';
  /** The method that it is another name of, and is priced as. */
  like?: string;
}>;

const ASSET_METHODS = `
  getAsset getAssets getAssetBatch getAssetProof getAssetProofs getAssetProofBatch getAssetsByOwner
  getAssetsByAuthority getAssetsByCreator getAssetsByGroup searchAssets getAssetSignatures
  getSignaturesForAsset getTokenAccounts getNftEditions getGrouping`
  .trim()
  .split(/\s+/);

/**
 * Every method of Agave's HTTP interface (Agave `rpc/src/rpc.rs`), the asset standard, and known extensions. Shared are
 * reads that show their slot, so that an answer can be too old, and what is the same for every caller; not those whose
 * moment matters: statuses, simulations, fees of a message.
 */
export const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ...rows({ lane: 'state', class: 'light', shared: true })`
    getAccountInfo getMultipleAccounts getBalance getTokenSupply getTokenAccountBalance getSlot
    getLatestBlockhash`,
  ...rows({ lane: 'state', class: 'light' })`
    getBlockHeight getTransactionCount getEpochInfo isBlockhashValid getFeeForMessage
    getRecentPrioritizationFees simulateTransaction getVoteAccounts getBlockProduction
    getLeaderSchedule getSlotLeader getSlotLeaders`,
  ...rows({ lane: 'state', class: 'meta', shared: true })`
    getVersion getStakeMinimumDelegation getInflationGovernor getInflationRate
    getMinimumBalanceForRentExemption`,
  ...rows({ lane: 'state', class: 'meta' })`
    getClusterNodes getIdentity getHighestSnapshotSlot getMaxRetransmitSlot getMaxShredInsertSlot
    getRecentPerformanceSamples getBlockCommitment getAgGenesisCert`,
  // By rules of ours (`respond/rules.ts`).
  ...rows({ lane: 'state', class: 'light', direct: false })`getSignatureStatuses`,
  ...rows({ lane: 'state', class: 'meta', direct: false })`getHealth`,
  ...rows({ lane: 'state', class: 'meta', immutable: 'fixed' })`getGenesisHash getEpochSchedule`,
  ...rows({ lane: 'scan', class: 'scan' })`
    getProgramAccounts getTokenAccountsByOwner getTokenAccountsByDelegate getTokenLargestAccounts
    getLargestAccounts getSupply`,
  ...rows({ lane: 'archive', class: 'history', immutable: 'slot-in-params' })`getBlock getBlockTime`,
  ...rows({ lane: 'archive', class: 'history', immutable: 'slot-in-result' })`getTransaction`,
  ...rows({ lane: 'archive', class: 'history' })`
    getSignaturesForAddress getBlocks getBlocksWithLimit getInflationReward`,
  ...rows({ lane: 'archive', class: 'meta' })`getFirstAvailableBlock minimumLedgerSlot`,
  ...rows({ lane: 'send', class: 'write' })`sendTransaction`,
  ...ASSET_METHODS.flatMap((name) => rows({ lane: 'assets', class: 'asset' })`${name}`),
  ...ASSET_METHODS.filter((name) => name !== 'getAssetsByAuthority').flatMap(originally),
  ...rows({ lane: 'scan', class: 'scan', declared: true })`
    getProgramAccountsV2 getTokenAccountsByOwnerV2 getTokenAccountsByMint`,
  ...rows({ lane: 'archive', class: 'history', declared: true })`
    getTransactionsForAddress getTransfersByAddress`,
  ...rows({ lane: 'state', class: 'light', declared: true })`
    getPriorityFeeEstimate simulateBundle getBundleStatuses getInflightBundleStatuses getTipAccounts`,
  ...rows({ lane: 'send', class: 'write', declared: true })`sendBundle requestAirdrop`,
]);

/** Gives methods of the same traits, whose names follow as a text. */
function rows(traits: Pick<Method, 'lane' | 'class'> & Partial<Method>) {
  const direct = (traits.lane === 'state' || traits.lane === 'assets') && traits.immutable === undefined;
  return (text: TemplateStringsArray, ...names: readonly string[]): [string, Method][] =>
    String.raw(text, ...names)
      .trim()
      .split(/\s+/)
      .map((name) => [name, { declared: false, direct, ...traits }]);
}

/** The name in snake case that the asset server knew a method by first, and still does (das_api `builder.rs`). */
function originally(like: string): [string, Method][] {
  const name = like.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return rows({ lane: 'assets', class: 'asset', like })`${name}`;
}

/** What a method that only a config knows is taken for: a read, unless its name says that it sends. */
export function declaredUnknown(name: string): Method {
  return name.startsWith('send')
    ? { lane: 'send', class: 'write', declared: true, direct: false }
    : { lane: 'state', class: 'light', declared: true, direct: true };
}

/** The deadline of an attempt by class; what has none of its own in the config is light. */
export function dueMsBy({ light, history, scan, send }: GatewayConfig['deadlinesMs']) {
  return { light, meta: light, asset: light, history, scan, write: send };
}

const SUBSCRIPTION =
  /^(account|block|logs|program|root|signature|slot|slotsUpdates|vote)(Subscribe|Unsubscribe)$/;

/** Whether the method belongs to the WebSocket interface, which this endpoint does not offer. */
export function isSubscription(method: string): boolean {
  return SUBSCRIPTION.test(method);
}
