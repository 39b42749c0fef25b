/**
 * How much an account prefers a backend, 0 up to 2^32: rendezvous hashing, so that one caller reads from one node, callers
 * spread over all nodes, and a node that leaves moves only its own callers (Thaler and Ravishankar, 1998).
 */
export function preference(accountId: number, backend: number): number {
  let h = Math.imul(accountId ^ backend, 0x85ebca6b) ^ Math.imul(backend, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The number of a backend for `preference`: FNV-1a of its name, so that the order survives restarts and edits of the list. */
export function numberOf(name: string): number {
  let h = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) h = Math.imul(h ^ byte, 0x01000193);
  return h >>> 0;
}
