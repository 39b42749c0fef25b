import type { Address } from '@solana/kit';
import type { Chain } from '../chain/chain.ts';
import { computeBudgetOf, feeOf } from '../protocol/fee.ts';
import { identityKeypair } from '../protocol/keypair.ts';
import { epochOf, firstSlotOf, SLOTS_PER_EPOCH } from '../protocol/slot.ts';
import { nonceAccountOf } from '../protocol/transaction.ts';
import { wireMessage } from '../request/encoded.ts';
import * as read from '../request/params.ts';
import { transactionOf } from './history.ts';
import { API_VERSION, inContext, method, type NamedMethods } from './method.ts';

const ACCOUNT_BYTES_MAX = 10n * 1024n * 1024n;
const FEE_SLOTS = 150n;
const FEE_ADDRESSES_MAX = 128;

/** The node's identity and constants, the position of the chain by commitment, and what transactions cost. */
export const CLUSTER_METHODS: NamedMethods = {
  getHealth: method(0, 0, () => 'ok'),
  getVersion: method(0, 0, (chain) => ({ 'feature-set': chain.featureSetId, 'solana-core': API_VERSION })),
  getIdentity: method(0, 0, () => ({ identity: identityKeypair().address })),
  getGenesisHash: method(0, 0, (chain) => chain.genesisHash),
  getEpochSchedule: method(0, 0, () => ({
    firstNormalEpoch: 0,
    firstNormalSlot: 0,
    leaderScheduleSlotOffset: SLOTS_PER_EPOCH,
    slotsPerEpoch: SLOTS_PER_EPOCH,
    warmup: false,
  })),
  getFirstAvailableBlock: method(0, 0, () => 0),
  minimumLedgerSlot: method(0, 0, () => 0),
  getMinimumBalanceForRentExemption: method(1, 1, (chain, [bytes, config]) => {
    read.commitmentConfig(config);
    return chain.rentExemptMinimum(Number(read.u64(bytes, 'usize', ACCOUNT_BYTES_MAX)));
  }),
  getSlot: method(0, 1, (chain, [config]) => read.bankSlot(chain, config)),
  // Every slot has a block.
  getBlockHeight: method(0, 1, (chain, [config]) => read.bankSlot(chain, config)),
  getTransactionCount: method(0, 1, (chain, [config]) => chain.ledger.count(read.bankSlot(chain, config))),
  getEpochInfo: method(0, 1, (chain, [config]) => {
    const slot = read.bankSlot(chain, config);
    const epoch = epochOf(slot);
    return {
      absoluteSlot: slot,
      blockHeight: slot,
      epoch,
      slotIndex: slot - firstSlotOf(epoch),
      slotsInEpoch: SLOTS_PER_EPOCH,
      transactionCount: chain.ledger.count(slot),
    };
  }),
  getLatestBlockhash: method(0, 1, (chain, [config]) => {
    const slot = read.bankSlot(chain, config);
    return inContext(slot, chain.latestBlockhash(slot));
  }),
  isBlockhashValid: method(1, 1, (chain, [hash, config]) => {
    const blockhash = read.blockhash(hash);
    const slot = read.bankSlot(chain, config);
    return inContext(slot, chain.isRecentAt(slot, blockhash));
  }),
  getFeeForMessage: method(1, 1, (chain, [text, options]) => {
    const transaction = wireMessage(text);
    const config = read.config(options, 'RpcContextConfig');
    const view = read.view(chain, config);
    const isKnown =
      chain.isRecentAt(view.slot, transaction.recentBlockhash) ||
      nonceAccountOf(transaction, view.account) !== undefined;
    return inContext(view.slot, isKnown ? feeOf(transaction) : null);
  }),
  getRecentPrioritizationFees: method(0, 1, (chain, [addresses]) => {
    const keys = read.inputs(addresses ?? [], FEE_ADDRESSES_MAX, read.address);
    const last = chain.slotAt('confirmed');
    return Array.from({ length: Number(FEE_SLOTS) }, (_, index) => {
      const slot = last - FEE_SLOTS + 1n + BigInt(index);
      return { prioritizationFee: slotFee(chain, slot, keys), slot };
    });
  }),
};

/** The lowest price per unit that got into a block, and, if higher, into the write-locks of the given accounts. */
function slotFee(chain: Chain, slot: bigint, keys: readonly Address[]): bigint {
  let lowest: bigint | undefined;
  const lowestOf = new Map<Address, bigint>();
  for (const record of chain.ledger.inSlot(slot)) {
    const { price } = computeBudgetOf(transactionOf(record));
    if (lowest === undefined || price < lowest) lowest = price;
    for (const key of record.meta.writableKeys) {
      const known = lowestOf.get(key);
      if (known === undefined || price < known) lowestOf.set(key, price);
    }
  }
  const ofKeys = keys.map((key) => lowestOf.get(key) ?? 0n);
  return [lowest ?? 0n, ...ofKeys].reduce((highest, fee) => (fee > highest ? fee : highest));
}
