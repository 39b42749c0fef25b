import { describe, expect, test } from 'bun:test';
import { type Json } from '../../localnet/json/value.ts';
import { GENESIS_SLOT } from '../../localnet/genesis/accounts.ts';
import { API_VERSION } from '../../localnet/methods/method.ts';
import { identityKeypair, voteKeypair } from '../../localnet/protocol/keypair.ts';
import { SLOTS_PER_EPOCH } from '../../localnet/protocol/slot.ts';
import { alice, bob, integer, list, object, ROOTED_LAG, startChain, systemAccount } from './harness.ts';

const identity = identityKeypair().address;
const vote = voteKeypair().address;
const epoch = GENESIS_SLOT / SLOTS_PER_EPOCH;

test('every method that asks for the node and the cluster answers in its shape', async () => {
  using net = await startChain();
  const none = { foundation: 0, total: 0, validator: 0 };
  const governor = { foundation: 0, foundationTerm: 0, initial: 0, taper: 0, terminal: 0 };
  const node = {
    clientId: 'Agave',
    gossip: null,
    pubkey: identity,
    rpc: null,
    shredVersion: expect.any(BigInt),
  };
  expect(await net.result('getIdentity')).toEqual({ identity });
  const version = { 'feature-set': expect.any(BigInt), 'solana-core': API_VERSION };
  expect(await net.result('getVersion')).toEqual(version);
  expect(await net.result('getGenesisHash')).toMatch(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
  expect(await net.result('getHealth')).toBe('ok');
  expect(await net.result('getFirstAvailableBlock')).toBe(0n);
  expect(await net.result('minimumLedgerSlot')).toBe(0n);
  expect(await net.result('getMinimumBalanceForRentExemption', 0n)).toBe(890_880n);
  expect(await net.result('getMinimumBalanceForRentExemption', 165n)).toBe(2_039_280n);
  expect(await net.result('getEpochSchedule')).toEqual({
    firstNormalEpoch: 0n,
    firstNormalSlot: 0n,
    leaderScheduleSlotOffset: 432_000n,
    slotsPerEpoch: 432_000n,
    warmup: false,
  });
  expect(await net.result('getEpochInfo', { commitment: 'processed' })).toEqual({
    absoluteSlot: GENESIS_SLOT,
    blockHeight: GENESIS_SLOT,
    epoch: 1041n,
    slotIndex: 288_000n,
    slotsInEpoch: 432_000n,
    transactionCount: 0n,
  });
  expect(await net.result('getClusterNodes')).toEqual([expect.objectContaining(node)]);
  expect(await net.result('getSlotLeader')).toBe(identity);
  expect(await net.result('getSlotLeaders', GENESIS_SLOT, 3n)).toEqual([identity, identity, identity]);
  expect(await net.result('getInflationGovernor')).toEqual(governor);
  expect(await net.result('getInflationRate')).toEqual({ epoch, ...none });
  expect(await net.result('getInflationReward', [identity])).toEqual([null]);
  expect(await net.result('getMaxShredInsertSlot')).toBe(GENESIS_SLOT);
  expect(await net.result('getMaxRetransmitSlot')).toBe(0n);
  expect(await net.result('getAgGenesisCert')).toBeNull();
});

describe('exactly', () => {
  const processed = { commitment: 'processed' };

  test('the validator voted for the slot before, and is delinquent only for those who allow it less', async () => {
    using net = await startChain();
    net.advance(10);
    const slot = GENESIS_SLOT + 10n;
    const account = {
      activatedStake: 1_000_000_000_000n,
      commission: 0n,
      epochCredits: [1037n, 1038n, 1039n, 1040n, 1041n].map((of) => [
        of,
        expect.any(BigInt),
        expect.any(BigInt),
      ]),
      epochVoteAccount: true,
      lastVote: slot - 1n,
      nodePubkey: identity,
      rootSlot: slot - BigInt(ROOTED_LAG),
      votePubkey: vote,
    };
    const call = (config: Json) => net.result('getVoteAccounts', config);
    expect(await call(processed)).toEqual({ current: [account], delinquent: [] });
    expect(await call({ ...processed, votePubkey: vote })).toEqual({ current: [account], delinquent: [] });
    expect(await call({ ...processed, votePubkey: alice.address })).toEqual({ current: [], delinquent: [] });
    expect(await call({ ...processed, delinquentSlotDistance: 1n })).toEqual({
      current: [],
      delinquent: [account],
    });
  });

  test('all lamports are in the supply, and the largest accounts have the most', async () => {
    using net = await startChain({ accounts: [[alice.address, systemAccount(5_000_000_000n)]] });
    const supply = async () => object(await net.valueOf('getSupply', processed));
    const before = await supply();
    await net.transfer(alice, bob.address, 1_000_000n);
    expect((await supply())['total']).toBe(integer(before['total']) - 5_000n); // the fee is burned
    expect(await net.valueOf('getSupply', { commitment: 'finalized' })).toEqual(before);
    const largest = list(await net.valueOf('getLargestAccounts', processed)).map(object);
    const lamports = largest.map((row) => integer(row['lamports']));
    expect(lamports).toEqual(lamports.toSorted((one, other) => (one < other ? 1 : -1)));
    expect(largest.map((row) => row['address'])).toContain(alice.address);
    expect(await net.valueOf('getLargestAccounts', { filter: 'nonCirculating' })).toEqual([]);
  });
});
