import { describe, expect, test } from 'bun:test';
import { dueMsBy, isSubscription, METHODS } from '../../../gateway/methods/table.ts';
import { planCall } from '../../../gateway/respond/planned-call.ts';
import { createRouter } from '../../../gateway/upstream/selection.ts';
import { backendOf } from '../upstream/of.ts';

/** The words of a text. */
const words = (text: string) => text.split(/[ \n]+/);

/** Agave's HTTP interface by the lane that must serve it (Agave `rpc/src/rpc.rs`). */
const AGAVE: Readonly<Record<string, readonly string[]>> = {
  state:
    words(`getAccountInfo getMultipleAccounts getBalance getTokenSupply getTokenAccountBalance getSignatureStatuses
    getSlot getBlockHeight getTransactionCount getEpochInfo getLatestBlockhash isBlockhashValid
    getFeeForMessage getRecentPrioritizationFees simulateTransaction getVoteAccounts getBlockProduction
    getLeaderSchedule getSlotLeader getSlotLeaders getGenesisHash getEpochSchedule getAgGenesisCert
    getClusterNodes getIdentity getVersion getHealth getHighestSnapshotSlot getMaxRetransmitSlot
    getMaxShredInsertSlot getRecentPerformanceSamples getBlockCommitment getStakeMinimumDelegation
    getInflationGovernor getInflationRate getMinimumBalanceForRentExemption`),
  scan: words(`getProgramAccounts getTokenAccountsByOwner getTokenAccountsByDelegate getTokenLargestAccounts
    getLargestAccounts getSupply`),
  archive: words(`getBlock getTransaction getSignaturesForAddress getBlocks getBlocksWithLimit getBlockTime
    getInflationReward getFirstAvailableBlock minimumLedgerSlot`),
  send: words(`sendTransaction`),
};

const ASSETS =
  words(`getAsset getAssets getAssetBatch getAssetProof getAssetProofs getAssetProofBatch getAssetsByOwner
  getAssetsByAuthority getAssetsByCreator getAssetsByGroup searchAssets getAssetSignatures
  getSignaturesForAsset getTokenAccounts getNftEditions getGrouping`);

const EXTENSIONS =
  words(`getProgramAccountsV2 getTokenAccountsByOwnerV2 getTransactionsForAddress getTransfersByAddress
  getTokenAccountsByMint getPriorityFeeEstimate simulateBundle sendBundle getBundleStatuses getTipAccounts
  getInflightBundleStatuses requestAirdrop`);

/** The first names of asset methods, in snake case (das_api `builder.rs`). */
const ORIGINALS = ASSETS.filter((name) => name !== 'getAssetsByAuthority').map(
  (name) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), name] as const,
);

const rowsOf = (names: readonly string[]) => names.map((name) => METHODS.get(name));
const like = (row: object, names: readonly unknown[]) => names.map(() => expect.objectContaining(row));

describe('the table of methods', () => {
  test.each(Object.entries(AGAVE))('has what Agave serves from the lane %s', (lane, names) => {
    expect(rowsOf(names)).toEqual(like({ lane, declared: false }, names));
  });

  test('has the asset standard, by the first names too, which are served by the lane assets alone', () => {
    const row = { lane: 'assets', class: 'asset', declared: false };
    expect(rowsOf(ASSETS)).toEqual(like(row, ASSETS));
    for (const [name, own] of ORIGINALS) expect(METHODS.get(name)).toMatchObject({ ...row, like: own });
  });

  test('has extensions, which are served only where a backend declares them', () => {
    expect(rowsOf(EXTENSIONS)).toEqual(like({ declared: true }, EXTENSIONS));
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

  test('has the answer of one call shared by reads alone that are the same for every caller', () => {
    const shared =
      words(`getAccountInfo getMultipleAccounts getBalance getTokenSupply getTokenAccountBalance getSlot
      getLatestBlockhash getVersion getStakeMinimumDelegation getInflationGovernor getInflationRate
      getMinimumBalanceForRentExemption`);
    const direct = [...METHODS].filter(([, row]) => row.shared === true && row.direct).map(([name]) => name);
    expect(direct.toSorted()).toEqual(shared.toSorted());
    expect([...METHODS.values()].filter((row) => row.shared === true)).toHaveLength(shared.length);
  });

  test('gives every scan the class scan, which has the deadline of one', () => {
    for (const [, { lane, class: kind }] of METHODS) expect(kind === 'scan').toBe(lane === 'scan');
  });
});

test('another name of a method costs what the method does, unless it has a price of its own', () => {
  const routeOf = createRouter([backendOf({ lanes: ['assets'], profile: 'das' })]);
  const call = { kind: 'call', id: new Uint8Array(), method: 'get_asset', params: undefined } as const;
  const priced = (prices: Record<string, number>) =>
    planCall(call, routeOf, { default: 1, methods: new Map(Object.entries(prices)) }).credits;
  expect([priced({ getAsset: 10 }), priced({ getAsset: 10, get_asset: 3 }), priced({})]).toEqual([10, 3, 1]);
});

test('A17 a class has the deadline of its key, and what has none is light', () => {
  const due = { light: 10_000, meta: 10_000, asset: 10_000, history: 30_000, scan: 300_000, write: 20_000 };
  expect(dueMsBy({ light: 10_000, history: 30_000, scan: 300_000, send: 20_000 })).toEqual(due);
});

test('subscriptions are those of the WebSocket interface', () => {
  for (const subject of words('account block logs program root signature slot slotsUpdates vote'))
    for (const name of [`${subject}Subscribe`, `${subject}Unsubscribe`])
      expect([name, isSubscription(name), METHODS.has(name)]).toEqual([name, true, false]);
  const others = [
    'subscribe',
    'accountSubscribeX',
    'xaccountSubscribe',
    'accountsubscribe',
    'blockSubscribe\n',
    '',
  ];
  expect(others.filter(isSubscription)).toEqual([]);
});
