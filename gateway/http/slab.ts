export const EMPTY = Buffer.alloc(0);

/** Longer bytes are a view of what was read: to copy them would cost more. */
const COPIED_BYTES_MAX = 1_024;
/** Who keeps a copy keeps so much. */
const SLAB_BYTES = 16_384;

let slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
let used = 0;

/**
 * Gives what a socket has read, from an index on. A few bytes are copied to memory that they share with others: what was read has
 * no buffer object of its own until a view of it is made, and to make one costs 0.5 µs, twice a call.
 */
export function readFrom(bytes: Buffer, from: number): Buffer {
  const length = bytes.length - from;
  if (length > COPIED_BYTES_MAX) return bytes.subarray(from);
  if (length > SLAB_BYTES - used) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    used = 0;
  }
  bytes.copy(slab, used, from);
  used += length;
  return slab.subarray(used - length, used);
}
