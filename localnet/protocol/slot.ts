import { createHash } from 'node:crypto';
import { getBase58Decoder } from '@solana/kit';

/** Slots in an epoch; there is no warm-up, as on mainnet today. */
export const SLOTS_PER_EPOCH = 432_000n;

/** The epoch that a slot belongs to. */
export function epochOf(slot: bigint): bigint {
  return slot / SLOTS_PER_EPOCH;
}

/** The first slot of an epoch. */
export function firstSlotOf(epoch: bigint): bigint {
  return epoch * SLOTS_PER_EPOCH;
}

/*
 * When a slot was. Slots tick evenly from an anchor, and every run of the chain (and every jump of the machine's
 * clock) adds one, so the times of any number of empty blocks cost a row per run.
 */

/** From `slot` on, slots begin at `atMs` (Unix milliseconds) plus a multiple of `slotMs`. */
export type Anchor = Readonly<{ slot: bigint; atMs: number; slotMs: number }>;

/** When a slot begins, in Unix milliseconds. `anchors` ascend by slot and the first is that of slot 0. */
export function slotStartMs(anchors: readonly Anchor[], slot: bigint): number {
  const anchor = anchors.findLast((candidate) => candidate.slot <= slot);
  if (anchor === undefined) throw new Error(`no anchor at or before slot ${slot}`);
  return anchor.atMs + Number(slot - anchor.slot) * anchor.slotMs;
}

/** A slot's block time, in Unix seconds. */
export function blockTimeOf(anchors: readonly Anchor[], slot: bigint): bigint {
  return BigInt(Math.floor(slotStartMs(anchors, slot) / 1000));
}

/** The anchor of a run that begins with `slot` at `nowMs`: never before the slot that came last, so time never goes back. */
export function nextAnchor(anchors: readonly Anchor[], slot: bigint, nowMs: number, slotMs: number): Anchor {
  const lastMs = slot === 0n ? nowMs : slotStartMs(anchors, slot - 1n);
  return { slot, atMs: Math.max(nowMs, lastMs), slotMs };
}

/*
 * Blockhashes are derived from the chain's seed, so that an empty block costs nothing to keep. As in Agave, a
 * transaction in slot S may carry the hash of a block up to 150 blocks older than S's parent.
 */

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
type BlockhashQueue = Readonly<{
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
