import { describe, expect, test } from 'bun:test';
import { isSubscription, METHODS } from '../../../gateway/methods/table.ts';

/** Agave's HTTP interface by the lane that must serve it (Agave `rpc/src/rpc.rs`). */
const AGAVE: Readonly<Record<string, readonly string[]>> = {
  state: [
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
    'getGenesisHash',
    'getEpochSchedule',
    'getAgGenesisCert',
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
  ],
  scan: [
    'getProgramAccounts',
    'getTokenAccountsByOwner',
    'getTokenAccountsByDelegate',
    'getTokenLargestAccounts',
    'getLargestAccounts',
    'getSupply',
  ],
  archive: [
    'getBlock',
    'getTransaction',
    'getSignaturesForAddress',
    'getBlocks',
    'getBlocksWithLimit',
    'getBlockTime',
    'getInflationReward',
    'getFirstAvailableBlock',
    'minimumLedgerSlot',
  ],
  send: ['sendTransaction'],
};

const ASSETS = [
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
];

const EXTENSIONS = [
  'getProgramAccountsV2',
  'getTokenAccountsByOwnerV2',
  'getTransactionsForAddress',
  'getTransfersByAddress',
  'getTokenAccountsByMint',
  'getPriorityFeeEstimate',
  'simulateBundle',
  'sendBundle',
  'getBundleStatuses',
  'getTipAccounts',
  'getInflightBundleStatuses',
  'requestAirdrop',
];

const REMOVED = [
  'getConfirmedBlock',
  'getConfirmedBlocks',
  'getConfirmedBlocksWithLimit',
  'getConfirmedTransaction',
  'getConfirmedSignaturesForAddress',
  'getConfirmedSignaturesForAddress2',
  'getRecentBlockhash',
  'getFees',
  'getFeeCalculatorForBlockhash',
  'getFeeRateGovernor',
  'getSnapshotSlot',
  'getStakeActivation',
  'confirmTransaction',
  'getSignatureStatus',
  'getSignatureConfirmation',
  'getTotalSupply',
  'getStorageTurn',
  'getStorageTurnRate',
];

const SUBJECTS = ['account', 'block', 'logs', 'program', 'root', 'signature', 'slot', 'slotsUpdates', 'vote'];

/** The first names of asset methods (das_api `builder.rs`). */
const ORIGINALS: readonly (readonly [string, string])[] = [
  ['get_asset', 'getAsset'],
  ['get_assets', 'getAssets'],
  ['get_asset_batch', 'getAssetBatch'],
  ['get_asset_proof', 'getAssetProof'],
  ['get_asset_proofs', 'getAssetProofs'],
  ['get_asset_proof_batch', 'getAssetProofBatch'],
  ['get_assets_by_owner', 'getAssetsByOwner'],
  ['get_assets_by_creator', 'getAssetsByCreator'],
  ['get_assets_by_group', 'getAssetsByGroup'],
  ['search_assets', 'searchAssets'],
  ['get_asset_signatures', 'getAssetSignatures'],
  ['get_signatures_for_asset', 'getSignaturesForAsset'],
  ['get_token_accounts', 'getTokenAccounts'],
  ['get_nft_editions', 'getNftEditions'],
  ['get_grouping', 'getGrouping'],
];

describe('the table of methods', () => {
  test.each(ORIGINALS)('%s is %s by its first name', (name, like) => {
    expect<unknown>(METHODS.get(name)).toMatchObject({
      lane: 'assets',
      class: 'asset',
      declared: false,
      like,
    });
    expect(METHODS.has(like)).toBe(true);
  });

  test.each(Object.entries(AGAVE).flatMap(([lane, names]) => names.map((name) => [name, lane] as const)))(
    '%s of Agave is served by every backend of the lane %s',
    (name, lane) => {
      expect<unknown>(METHODS.get(name)).toMatchObject({ lane, declared: false });
    },
  );

  test.each(ASSETS.map((name) => [name]))(
    '%s of the asset standard is served by the lane assets alone',
    (name) => {
      expect<unknown>(METHODS.get(name)).toMatchObject({ lane: 'assets', class: 'asset', declared: false });
    },
  );

  test.each(EXTENSIONS.map((name) => [name]))('%s is served only where a backend declares it', (name) => {
    expect(METHODS.get(name)?.declared).toBe(true);
  });

  test.each(REMOVED.map((name) => [name]))('%s, which Agave has removed, is not in it', (name) => {
    expect(METHODS.has(name)).toBe(false);
  });

  test('holds nothing else', () => {
    const known = [
      ...Object.values(AGAVE).flat(),
      ...ASSETS,
      ...ORIGINALS.map(([name]) => name),
      ...EXTENSIONS,
    ];
    expect([...METHODS.keys()].toSorted()).toEqual(known.toSorted());
    expect(new Set(known).size).toBe(known.length);
  });

  test('takes exactly what changes the chain for a write, so that nothing else is never tried again and no send is', () => {
    const writes = [...METHODS].filter(([, { class: kind }]) => kind === 'write').map(([name]) => name);
    expect(writes.toSorted()).toEqual(['requestAirdrop', 'sendBundle', 'sendTransaction']);
  });

  test('gives every scan the class scan, which has the deadline of one', () => {
    for (const [, { lane, class: kind }] of METHODS) expect(kind === 'scan').toBe(lane === 'scan');
  });
});

describe('subscriptions (spec 4.3.5)', () => {
  test.each(SUBJECTS.flatMap((subject) => [[`${subject}Subscribe`], [`${subject}Unsubscribe`]]))(
    '%s is one',
    (name) => {
      expect(isSubscription(name)).toBe(true);
      expect(METHODS.has(name)).toBe(false);
    },
  );

  test.each([
    ['subscribe'],
    ['accountSubscribeX'],
    ['xaccountSubscribe'],
    ['accountsubscribe'],
    ['blockSubscribe\n'],
    ['getSlot'],
    [''],
  ])('%p is none', (name) => {
    expect(isSubscription(name)).toBe(false);
  });
});
