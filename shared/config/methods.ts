import type { Lane } from './profiles.ts';

/** How much a call asks of a backend; it decides deadlines and which permits a call needs. */
export type MethodClass = 'light' | 'scan' | 'history' | 'write' | 'meta' | 'asset';

/**
 * Who answers: one attempt at one backend, nearly always (`direct`); backends in turn (`forward`); a rule of
 * `gateway/respond/rules.ts`; or live nodes and archives as one chain, by `gateway/history/`.
 */
type Answering =
  'direct' | 'forward' | 'statuses' | 'health' | 'floor' | 'block' | 'blocks' | 'transaction' | 'signatures';

/** A row of the table of methods. */
export type Method = Readonly<{
  lane: Lane;
  class: MethodClass;
  answering: Answering;
  /** The price of a call where the config says nothing; `undefined`, the usual one. */
  credits: number | undefined;
  /** It is served only by a backend whose config names it. */
  declared: boolean;
  /** Identical calls that are under way at the same moment may have one answer: reads that are no caller's own. */
  shared: boolean;
  /** Where the slot stands whose finality makes a result one that never changes; `fixed`: it is the chain's own. */
  immutable: 'slot-in-params' | 'slot-in-result' | 'fixed' | undefined;
  /** Where an answer says at which slot it was read. */
  slotIn: 'context' | 'result';
  /** The commitment that it reads at whatever its parameters say. */
  commitment: 'processed' | undefined;
  /** Its result is a list that may come as lines (NDJSON). */
  lines: boolean;
  /** It may be given to several backends at once (`plans.*.send_fanout`). */
  fanOut: boolean;
  /** The method that it is another name of, and is priced as. */
  like: string | undefined;
}>;

type Row = Pick<Method, 'lane' | 'class'> & Partial<Method>;

const LIGHT: Row = { lane: 'state', class: 'light', answering: 'direct' };
const META: Row = { lane: 'state', class: 'meta', answering: 'direct' };
const SCAN: Row = { lane: 'scan', class: 'scan' };
const HISTORY: Row = { lane: 'archive', class: 'history' };
const WRITE: Row = { lane: 'send', class: 'write' };
const ASSET: Row = { lane: 'assets', class: 'asset', answering: 'direct' };

/**
 * Every method of Agave's HTTP interface (Agave `rpc/src/rpc.rs`), the asset standard, and known extensions. Shared are
 * reads that show their slot, so that an answer can be too old, and what is the same for every caller; not those whose
 * moment matters: statuses, simulations, fees of a message.
 */
const TABLE: Readonly<Record<string, Row>> = {
  getAccountInfo: { ...LIGHT, shared: true },
  getMultipleAccounts: { ...LIGHT, shared: true, credits: 2 },
  getBalance: { ...LIGHT, shared: true },
  getTokenSupply: { ...LIGHT, shared: true },
  getTokenAccountBalance: { ...LIGHT, shared: true },
  getSlot: { ...LIGHT, shared: true, slotIn: 'result' },
  getLatestBlockhash: { ...LIGHT, shared: true },
  getBlockHeight: LIGHT,
  getTransactionCount: LIGHT,
  getEpochInfo: LIGHT,
  isBlockhashValid: LIGHT,
  getFeeForMessage: LIGHT,
  getRecentPrioritizationFees: LIGHT,
  simulateTransaction: { ...LIGHT, credits: 2 },
  getVoteAccounts: { ...LIGHT, credits: 2 },
  getBlockProduction: { ...LIGHT, credits: 2 },
  getLeaderSchedule: LIGHT,
  getSlotLeader: LIGHT,
  getSlotLeaders: LIGHT,
  getSignatureStatuses: { ...LIGHT, answering: 'statuses', commitment: 'processed' },
  getVersion: { ...META, shared: true },
  getStakeMinimumDelegation: { ...META, shared: true },
  getInflationGovernor: { ...META, shared: true },
  getInflationRate: { ...META, shared: true },
  getMinimumBalanceForRentExemption: { ...META, shared: true },
  getClusterNodes: { ...META, credits: 2 },
  getIdentity: META,
  getHighestSnapshotSlot: META,
  getMaxRetransmitSlot: META,
  getMaxShredInsertSlot: META,
  getRecentPerformanceSamples: META,
  getBlockCommitment: META,
  getAgGenesisCert: META,
  getHealth: { ...META, answering: 'health' },
  getGenesisHash: { ...META, answering: 'forward', immutable: 'fixed' },
  getEpochSchedule: { ...META, answering: 'forward', immutable: 'fixed' },
  getProgramAccounts: { ...SCAN, credits: 50, lines: true },
  getTokenAccountsByOwner: { ...SCAN, credits: 10 },
  getTokenAccountsByDelegate: { ...SCAN, credits: 10 },
  getTokenLargestAccounts: { ...SCAN, credits: 10 },
  getLargestAccounts: { ...SCAN, credits: 50 },
  getSupply: { ...SCAN, credits: 20 },
  getBlock: { ...HISTORY, answering: 'block', credits: 10, immutable: 'slot-in-params' },
  getBlockTime: { ...HISTORY, answering: 'block', credits: 5, immutable: 'slot-in-params' },
  getTransaction: { ...HISTORY, answering: 'transaction', credits: 10, immutable: 'slot-in-result' },
  getSignaturesForAddress: { ...HISTORY, answering: 'signatures', credits: 10 },
  getBlocks: { ...HISTORY, answering: 'blocks', credits: 10 },
  getBlocksWithLimit: { ...HISTORY, answering: 'blocks', credits: 10 },
  getInflationReward: { ...HISTORY, credits: 20 },
  getFirstAvailableBlock: { lane: 'archive', class: 'meta', answering: 'floor' },
  minimumLedgerSlot: { lane: 'archive', class: 'meta', answering: 'floor' },
  sendTransaction: { ...WRITE, credits: 2, fanOut: true },
  getAsset: { ...ASSET, credits: 10 },
  getAssets: { ...ASSET, credits: 20 },
  getAssetBatch: { ...ASSET, credits: 20 },
  getAssetProof: { ...ASSET, credits: 10 },
  getAssetProofs: { ...ASSET, credits: 20 },
  getAssetProofBatch: { ...ASSET, credits: 20 },
  getAssetsByOwner: { ...ASSET, credits: 20 },
  getAssetsByAuthority: { ...ASSET, credits: 20 },
  getAssetsByCreator: { ...ASSET, credits: 20 },
  getAssetsByGroup: { ...ASSET, credits: 20 },
  searchAssets: { ...ASSET, credits: 20 },
  getAssetSignatures: { ...ASSET, credits: 10 },
  getSignaturesForAsset: { ...ASSET, credits: 10 },
  getTokenAccounts: { ...ASSET, credits: 10 },
  getNftEditions: { ...ASSET, credits: 10 },
  getGrouping: { ...ASSET, credits: 10 },
  getProgramAccountsV2: { ...SCAN, declared: true, credits: 10 },
  getTokenAccountsByOwnerV2: { ...SCAN, declared: true, credits: 5 },
  getTokenAccountsByMint: { ...SCAN, declared: true, credits: 20 },
  getTransactionsForAddress: { ...HISTORY, declared: true, credits: 50 },
  getTransfersByAddress: { ...HISTORY, declared: true, credits: 50 },
  getPriorityFeeEstimate: { ...LIGHT, declared: true },
  simulateBundle: { ...LIGHT, declared: true, credits: 5 },
  getBundleStatuses: { ...LIGHT, declared: true },
  getInflightBundleStatuses: { ...LIGHT, declared: true },
  getTipAccounts: { ...LIGHT, declared: true },
  sendBundle: { ...WRITE, declared: true, credits: 10 },
  requestAirdrop: { ...WRITE, declared: true },
};

/** The names in snake case that the asset server knew its methods by first, and still does (das_api `builder.rs`). */
const FIRST_NAMES = Object.keys(TABLE)
  .filter((name) => TABLE[name]?.lane === 'assets' && name !== 'getAssetsByAuthority')
  .map((like) => [like.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), like] as const);

export const METHODS: ReadonlyMap<string, Method> = new Map([
  ...Object.entries(TABLE).map(([name, row]) => [name, methodOf(row)] as const),
  ...FIRST_NAMES.map(([name, like]) => [name, methodOf({ ...ASSET, like })] as const),
]);

/** All methods have the same members in the same order, so that the calls of any are as fast as those of one. */
function methodOf(row: Row): Method {
  return {
    lane: row.lane,
    class: row.class,
    answering: row.answering ?? 'forward',
    credits: row.credits,
    declared: row.declared ?? false,
    shared: row.shared ?? false,
    immutable: row.immutable,
    slotIn: row.slotIn ?? 'context',
    commitment: row.commitment,
    lines: row.lines ?? false,
    fanOut: row.fanOut ?? false,
    like: row.like,
  };
}

/** Declares a method that only a config knows: a read, unless its name says that it sends. */
export function declaredUnknown(name: string): Method {
  return methodOf({ ...(name.startsWith('send') ? WRITE : LIGHT), declared: true });
}

/** The deadline of an attempt by class; what has none of its own in the config is light. */
export function dueMsBy({
  light,
  history,
  scan,
  send,
}: Readonly<Record<'light' | 'history' | 'scan' | 'send', number>>) {
  return { light, meta: light, asset: light, history, scan, write: send };
}

const SUBSCRIPTION =
  /^(account|block|logs|program|root|signature|slot|slotsUpdates|vote)(Subscribe|Unsubscribe)$/;

/** Whether the method belongs to the WebSocket interface, which this endpoint does not offer. */
export function isSubscription(method: string): boolean {
  return SUBSCRIPTION.test(method);
}
