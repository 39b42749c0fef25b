/*
 * Vote accounts in the form of their fourth version (SIMD-0185), as Agave gives them (`account-decoder/src/parse_vote.rs`).
 * Older versions are read with the defaults that Agave fills in. The very first one is not read: no cluster has any.
 */
import { type Address, getBase58Decoder } from '@solana/kit';
import type { Json } from '../json/value.ts';
import { addressOf } from '../protocol/address.ts';

/** Versions by their tags. */
const V1_14_11 = 1;
const V3 = 2;
const V4 = 3;
/** A ring of the voters before: 32 keys with two epochs each, its index, and whether it is empty. */
const PRIOR_VOTERS_BYTES = 32 * (32 + 8 + 8) + 8 + 1;
const BLS_KEY_BYTES = 48;
const ALL_BPS = 10_000;
const COMMISSION_MAX = 255;
const base58 = getBase58Decoder();

/** Reads a vote account; throws RangeError when it ends too early, and gives undefined when its version is unknown. */
export function encodeVote(data: Uint8Array, key: Address): Json | undefined {
  const read = createReader(data);
  const version = read.u32();
  if (version !== V1_14_11 && version !== V3 && version !== V4) return undefined;
  const [nodePubkey, authorizedWithdrawer] = [read.address(), read.address()];
  const rewards = version === V4 ? readRewards(read) : oldRewards(read.u8(), key, nodePubkey);
  const votes = read.list(() => {
    const latency = version === V1_14_11 ? 0 : read.u8();
    return { latency, slot: read.u64(), confirmationCount: read.u32() };
  });
  const rootSlot = read.option(read.u64);
  const authorizedVoters = read.list(() => ({ epoch: read.u64(), authorizedVoter: read.address() }));
  if (version !== V4) read.bytes(PRIOR_VOTERS_BYTES);
  const epochCredits = read.list(() => ({
    epoch: read.u64(),
    credits: read.u64().toString(),
    previousCredits: read.u64().toString(),
  }));
  const lastTimestamp = { slot: read.u64(), timestamp: read.i64() };
  return {
    nodePubkey,
    authorizedWithdrawer,
    commission: Math.min(Math.ceil(rewards.inflationRewardsCommissionBps / 100), COMMISSION_MAX),
    votes,
    rootSlot,
    authorizedVoters,
    priorVoters: [],
    epochCredits,
    lastTimestamp,
    ...rewards,
  };
}

type Reader = ReturnType<typeof createReader>;

function readRewards(read: Reader) {
  const [inflationRewardsCollector, blockRevenueCollector] = [read.address(), read.address()];
  const [inflationRewardsCommissionBps, blockRevenueCommissionBps] = [read.u16(), read.u16()];
  return {
    inflationRewardsCollector,
    blockRevenueCollector,
    inflationRewardsCommissionBps,
    blockRevenueCommissionBps,
    pendingDelegatorRewards: read.u64().toString(),
    blsPubkeyCompressed: read.option(() => base58.decode(read.bytes(BLS_KEY_BYTES))),
  };
}

/** The rewards of older versions, of which only the commission in percent is written down. */
function oldRewards(commission: number, key: Address, node: Address) {
  return {
    inflationRewardsCollector: key,
    blockRevenueCollector: node,
    inflationRewardsCommissionBps: commission * 100,
    blockRevenueCommissionBps: ALL_BPS,
    pendingDelegatorRewards: '0',
    blsPubkeyCompressed: null,
  };
}

/** Fields in their order, as bincode writes them. A length or an option that the bytes cannot hold is a RangeError. */
function createReader(data: Uint8Array) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;
  function next(bytes: number): number {
    at += bytes;
    return at - bytes;
  }
  function bytes(length: number): Uint8Array {
    const from = next(length);
    if (at > data.length) throw new RangeError('the account ends too early');
    return data.subarray(from, at);
  }
  const u8 = () => view.getUint8(next(1));
  const u64 = () => view.getBigUint64(next(8), true);
  function list<Item>(read: () => Item): Item[] {
    const length = u64();
    if (length > BigInt(data.length)) throw new RangeError('a list longer than its account');
    return Array.from({ length: Number(length) }, read);
  }
  return {
    bytes,
    list,
    u8,
    u16: () => view.getUint16(next(2), true),
    u32: () => view.getUint32(next(4), true),
    u64,
    i64: () => view.getBigInt64(next(8), true),
    address: () => addressOf(bytes(32)),
    option: <Value>(read: () => Value): Value | null => (u8() === 0 ? null : read()),
  };
}
