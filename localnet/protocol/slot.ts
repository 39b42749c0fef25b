import { createHash } from 'node:crypto';
import { getBase58Decoder } from '@solana/kit';

/** Slots in an epoch; there is no warm-up, as on mainnet today. */
export const SLOTS_PER_EPOCH = 432_000n;

export function epochOf(slot: bigint): bigint {
  return slot / SLOTS_PER_EPOCH;
}

export function firstSlotOf(epoch: bigint): bigint {
  return epoch * SLOTS_PER_EPOCH;
}

/**
 * How many blocks a blockhash stays valid (Agave's MAX_PROCESSING_AGE): a transaction in slot S may carry the hash of a
 * block up to 150 blocks older than S's parent.
 */
export const BLOCKHASH_AGE_MAX = 150n;

const base58 = getBase58Decoder();

/** The blockhash of a slot's block, base58: derived from the chain's seed, so that an empty block costs nothing to keep. */
export function blockhashOf(seed: Uint8Array, slot: bigint): string {
  const slotBytes = new Uint8Array(BigUint64Array.of(slot).buffer);
  return base58.decode(createHash('sha256').update('block').update(seed).update(slotBytes).digest());
}
