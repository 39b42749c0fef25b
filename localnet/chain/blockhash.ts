/*
 * Blockhashes are derived from the chain's seed, so that an empty block costs nothing to keep. As in Agave, a
 * transaction in slot S may carry the hash of a block up to 150 blocks older than S's parent.
 */
import { createHash } from 'node:crypto';
import { getBase58Decoder } from '@solana/kit';

/** How many blocks a blockhash stays valid (Agave's MAX_PROCESSING_AGE). */
export const BLOCKHASH_AGE_MAX = 150n;

const base58 = getBase58Decoder();

/** The blockhash of a slot's block, base58. */
export function blockhashOf(seed: Uint8Array, slot: bigint): string {
  const slotBytes = new Uint8Array(8);
  new DataView(slotBytes.buffer).setBigUint64(0, slot, true);
  return base58.decode(createHash('sha256').update('block').update(seed).update(slotBytes).digest());
}

/** The blockhashes that may still matter: those within `keepBlocks` of the tip. */
export type BlockhashQueue = Readonly<{
  /** Takes in the block of `slot`, which follows the last one. */
  add(slot: bigint, hash: string): void;
  /** The slot of a blockhash, while it is remembered. */
  slotOf(hash: string): bigint | undefined;
}>;

/** An empty queue. */
export function createBlockhashQueue(keepBlocks: bigint): BlockhashQueue {
  const slots = new Map<string, bigint>();
  function add(slot: bigint, hash: string): void {
    slots.set(hash, slot);
    for (const [oldest, oldestSlot] of slots) {
      if (oldestSlot + keepBlocks > slot) break;
      slots.delete(oldest);
    }
  }
  return { add, slotOf: (hash) => slots.get(hash) };
}

/** Whether a bank whose newest blockhash is that of `newest` still accepts the hash of `slot`. */
export function isWithinAge(slot: bigint | undefined, newest: bigint): boolean {
  return slot !== undefined && slot <= newest && newest - slot <= BLOCKHASH_AGE_MAX;
}
