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
