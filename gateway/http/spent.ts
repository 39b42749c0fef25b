/**
 * What a reader may answer to a piece, or let its promise give: nobody will look at these bytes again. Their memory is
 * then the next read's at once. Left to the collector, a stream at full speed keeps touching new memory, which costs a
 * fifth of a relay's CPU time.
 */
export const SPENT = Symbol('spent');

/** Below this a collector is cheaper; above it memory is never part of a shared pool. */
const FREED_BYTES_MIN = 65_536;

/** Gives back the memory of bytes that fill it and that nobody will look at again: they are gone for whoever does. */
export function free(bytes: Buffer): void {
  const { buffer, byteLength } = bytes;
  if (byteLength < FREED_BYTES_MIN || buffer.byteLength !== byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
