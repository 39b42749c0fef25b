/*
 * The state of a cluster of one validator: it leads every slot, makes every block and votes for each in time.
 * Its votes are no transactions here, so its account on the chain stays as it was before the first.
 */
import { getBase58Encoder } from '@solana/kit';
import type { Chain } from '../chain/chain.ts';
import { STAKE_LAMPORTS } from '../genesis/validator.ts';
import { float, integersJson, isJsonObject, type Json, type JsonObject } from '../json/value.ts';
import { identityKeypair, voteKeypair } from '../protocol/keypair.ts';
import { epochOf, firstSlotOf, SLOTS_PER_EPOCH } from '../protocol/slot.ts';
import { invalidParams, isAbsent, RpcFailure } from '../request/params.ts';
import * as read from '../request/params.ts';
import { API_VERSION, inContext, method, type NamedMethods } from './method.ts';

/** The minimum of the stake program here, on which every feature is active. */
const DELEGATION_MIN = 1_000_000_000n;
const CREDITS_PER_SLOT = 16n;
const EPOCH_CREDITS_MAX = 5;
const DELINQUENT_SLOTS = 128n;
const LEADERS_MAX = 5_000n;
const SCHEDULES_KEPT = 5n;
const SLOT_HISTORY = 1_048_576n;
const LOCKOUT_HISTORY = 32;
const SAMPLES_MAX = 720n;
const SAMPLE_MS = 60_000;

/** Votes, leaders, production, samples and inflation. */
export const VALIDATOR_METHODS: NamedMethods = {
  getVoteAccounts: method(0, 1, (chain, [options]) => {
    const config = read.config(options, 'RpcGetVoteAccountsConfig');
    const wanted = isAbsent(config.votePubkey) ? voteKeypair().address : read.address(config.votePubkey);
    read.boolean(config.keepUnstakedDelinquents, false);
    const distance = read.optionalU64(config.delinquentSlotDistance) ?? DELINQUENT_SLOTS;
    const slot = chain.slotAt(read.commitment(config));
    const accounts = wanted === voteKeypair().address ? [voteAccount(chain, slot)] : [];
    // A vote is for the slot before, at best.
    const isCurrent = slot - 1n > (slot >= distance ? slot - distance : 0n);
    return { current: isCurrent ? accounts : [], delinquent: isCurrent ? [] : accounts };
  }),
  getLeaderSchedule: method(0, 2, (chain, [first, second]) => {
    const config = read.config(isJsonObject(first) ? first : second, 'RpcLeaderScheduleConfig');
    const identity = isAbsent(config.identity) ? identityKeypair().address : read.address(config.identity);
    const current = chain.slotAt(read.commitment(config));
    const slot = (isJsonObject(first) ? undefined : read.optionalU64(first)) ?? current;
    if (!hasSchedule(chain, epochOf(slot))) return null;
    return identity === identityKeypair().address
      ? { [identity]: integersJson(0, Number(SLOTS_PER_EPOCH) - 1) }
      : {};
  }),
  getSlotLeader: method(0, 1, (chain, [options]) => {
    read.bankSlot(chain, options);
    return identityKeypair().address;
  }),
  getSlotLeaders: method(2, 0, (chain, [startParam, limitParam]) => {
    const [start, limit] = [read.u64(startParam), read.u64(limitParam)];
    if (limit > LEADERS_MAX) throw invalidParams(`Invalid limit; max ${LEADERS_MAX}`);
    // No more slots than one epoch has.
    const epochs = limit === 0n ? [] : [epochOf(start), epochOf(start + limit - 1n)];
    const unknown = epochs.find((epoch) => !hasSchedule(chain, epoch));
    if (unknown !== undefined)
      throw invalidParams(`Invalid slot range: leader schedule for epoch ${unknown} is unavailable`);
    const { address } = identityKeypair();
    return Array.from({ length: Number(limit) }, () => address);
  }),
  getClusterNodes: method(0, 0, (chain) => [clusterNode(chain)]),
  getBlockProduction: method(0, 1, (chain, [options]) => {
    const config = read.config(options, 'RpcBlockProductionConfig');
    const { address } = identityKeypair();
    const isOurs = isAbsent(config.identity) || read.address(config.identity) === address;
    const slot = chain.slotAt(read.commitment(config));
    const range = readProductionRange(config, slot);
    const count = range.lastSlot - range.firstSlot + 1n;
    return inContext(slot, { byIdentity: isOurs ? { [address]: [count, count] } : {}, range });
  }),
  getBlockCommitment: method(1, 0, (chain, [slotParam]) => ({
    commitment: lockouts(chain, read.u64(slotParam)),
    totalStake: STAKE_LAMPORTS,
  })),
  getRecentPerformanceSamples: method(0, 1, (chain, [limitParam]) => {
    const limit = read.optionalU64(limitParam, 'usize') ?? SAMPLES_MAX;
    if (limit > SAMPLES_MAX) throw invalidParams(`Invalid limit; max ${SAMPLES_MAX}`);
    return samples(chain, limit);
  }),
  // Fees are burned and no rewards are paid: there is no inflation.
  getInflationGovernor: method(0, 1, (_chain, [config]) => {
    read.commitmentConfig(config);
    const none = float(0);
    return { foundation: none, foundationTerm: none, initial: none, taper: none, terminal: none };
  }),
  getInflationRate: method(0, 0, (chain) => {
    const none = float(0);
    const epoch = epochOf(chain.slotAt('finalized'));
    return { epoch, foundation: none, total: none, validator: none };
  }),
  getInflationReward: method(1, 1, (chain, [addresses, options]) => {
    const keys = read.list(addresses).map(read.address);
    const config = read.config(options, 'RpcEpochConfig');
    const slot = read.historySlot(chain, config);
    const current = epochOf(slot);
    const epoch = read.optionalU64(config.epoch) ?? (current === 0n ? 0n : current - 1n);
    // The rewards of an epoch stand in the first block of the next one.
    const boundary = firstSlotOf(epoch + 1n);
    if (boundary > slot) throw new RpcFailure(-32004, `Block not available for slot ${boundary}`);
    return keys.map(() => null);
  }),
  getHighestSnapshotSlot: method(0, 0, () => {
    throw new RpcFailure(-32008, 'No snapshot');
  }),
  getMaxShredInsertSlot: method(0, 0, (chain) => chain.slotAt('processed')),
  // There is no other validator to retransmit to.
  getMaxRetransmitSlot: method(0, 0, () => 0),
  // This chain's consensus has no genesis certificate.
  getAgGenesisCert: method(0, 0, () => null),
  getStakeMinimumDelegation: method(0, 1, (chain, [options]) =>
    inContext(read.bankSlot(chain, options), DELEGATION_MIN),
  ),
};

/** Whether a node still has, or already has, the schedule of an epoch: of the five for which it keeps the stakes. */
function hasSchedule(chain: Chain, epoch: bigint): boolean {
  const next = epochOf(chain.slotAt('finalized')) + 1n;
  return epoch <= next && epoch + SCHEDULES_KEPT > next;
}

function voteAccount(chain: Chain, slot: bigint): Json {
  const finalized = chain.slotAt('finalized');
  const epoch = epochOf(slot);
  const first = epoch < BigInt(EPOCH_CREDITS_MAX) ? 0n : epoch - BigInt(EPOCH_CREDITS_MAX) + 1n;
  const creditsUntil = (until: bigint) => (until < finalized ? until : finalized) * CREDITS_PER_SLOT;
  return {
    activatedStake: STAKE_LAMPORTS,
    commission: 0,
    epochCredits: Array.from({ length: Number(epoch - first) + 1 }, (_, index) => {
      const of = first + BigInt(index);
      return [of, creditsUntil(firstSlotOf(of + 1n)), creditsUntil(firstSlotOf(of))];
    }),
    epochVoteAccount: true,
    lastVote: slot - 1n,
    nodePubkey: identityKeypair().address,
    rootSlot: finalized < slot ? finalized : slot - 1n,
    votePubkey: voteKeypair().address,
  };
}

/** The node: it has an identity and no sockets for other validators. */
function clusterNode(chain: Chain): JsonObject {
  const sockets = 'gossip pubsub rpc serveRepair tpu tpuForwards tpuForwardsQuic tpuQuic tpuVote tvu';
  return {
    ...Object.fromEntries(sockets.split(' ').map((socket) => [socket, null])),
    clientId: 'Agave',
    featureSet: chain.featureSetId,
    pubkey: identityKeypair().address,
    shredVersion: shredVersion(chain.genesisHash),
    version: API_VERSION,
  };
}

/** As clusters derive it from their genesis: its 16-bit words one on the other, and never 0. */
function shredVersion(genesisHash: string): number {
  const hash = getBase58Encoder().encode(genesisHash);
  const words = Array.from(
    { length: 16 },
    (_, index) => ((hash[index * 2] ?? 0) << 8) | (hash[index * 2 + 1] ?? 0),
  );
  return Math.min(words.reduce((folded, word) => folded ^ word, 0) + 1, 0xffff);
}

function readProductionRange(config: JsonObject, slot: bigint) {
  if (isAbsent(config.range)) return { firstSlot: firstSlotOf(epochOf(slot)), lastSlot: slot };
  const range = read.struct(config.range, 'struct RpcBlockProductionConfigRange', 'firstSlot');
  const firstSlot = read.u64(range.firstSlot);
  const lastSlot = read.optionalU64(range.lastSlot) ?? slot;
  if (lastSlot < firstSlot)
    throw invalidParams(`lastSlot, ${lastSlot}, cannot be less than firstSlot, ${firstSlot}`);
  const oldest = slot + 1n > SLOT_HISTORY ? slot + 1n - SLOT_HISTORY : 0n;
  if (firstSlot < oldest) throw invalidParams(`firstSlot, ${firstSlot}, is too small; min ${oldest}`);
  if (lastSlot > slot) throw invalidParams(`lastSlot, ${lastSlot}, is too large; max ${slot}`);
  return { firstSlot, lastSlot };
}

/** The stake by how deep it is locked on a block; null for blocks that are no longer voted for, or not yet. */
function lockouts(chain: Chain, slot: bigint): Json {
  const [voted, root] = [chain.slotAt('confirmed'), chain.slotAt('finalized')];
  if (slot > voted || slot < root) return null;
  const depth = slot === root ? LOCKOUT_HISTORY - 1 : Math.min(Number(voted - slot), LOCKOUT_HISTORY - 2);
  return Array.from({ length: LOCKOUT_HISTORY }, (_, index) => (index === depth ? STAKE_LAMPORTS : 0));
}

/** A sample a minute, newest first, of minutes that are over. */
function samples(chain: Chain, limit: bigint): Json {
  const size = BigInt(Math.max(1, Math.round(SAMPLE_MS / chain.slotMs)));
  const newest = (chain.slotAt('confirmed') + 1n) / size; // the window after the last one that is over
  const oldest = newest > limit ? newest - limit : 0n;
  const counts = chain.ledger.countsByWindow(oldest * size, newest * size, size);
  return Array.from({ length: Number(newest - oldest) }, (_, index) => {
    const window = newest - BigInt(index) - 1n;
    const [first, last] = [window * size, (window + 1n) * size - 1n];
    const count = counts.get(window) ?? 0n;
    return {
      numNonVoteTransactions: count,
      numSlots: size,
      numTransactions: count,
      samplePeriodSecs: chain.blockTimeOf(last + 1n) - chain.blockTimeOf(first),
      slot: last,
    };
  });
}
