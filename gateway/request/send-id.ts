import { QUOTE } from '../json/scan.ts';

/** The length of the ids that backends get: JSON strings of 16 characters. */
export const SEND_ID_BYTES = 18;
/** Base 32 (RFC 4648): five random bits a character, 80 an id. */
const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567');
const CHARACTERS = SEND_ID_BYTES - 2;
/** Ids that are made at once: random bytes for each alone cost more than all the rest. */
const IDS_MADE = 512;

/**
 * Gives the id of the next send to a backend; `fillRandom` fills bytes that nobody can guess. Every send has one of its own,
 * and its answer gets the caller's in its place, so that no byte of a caller decides what is taken for an answer, and a late
 * answer of a faulty node fits no other call. Ids have no prefix and no counter, which an error that echoes the request, or
 * data of the chain, would give away (docs/decisions/own-ids.md).
 */
export function createSendIds(fillRandom: (bytes: Uint8Array) => unknown): () => Uint8Array {
  const random = new Uint8Array(IDS_MADE * CHARACTERS);
  let ids = new Uint8Array(0);
  let at = 0;
  return function nextId() {
    if (at === ids.length) {
      fillRandom(random);
      // New memory, because ids of the old are still compared with.
      ids = new Uint8Array(IDS_MADE * SEND_ID_BYTES).fill(QUOTE);
      for (let i = 0, to = 1; i < random.length; to += 2)
        for (const end = i + CHARACTERS; i < end; i++) ids[to++] = ALPHABET[(random[i] ?? 0) & 31] ?? 0;
      at = 0;
    }
    at += SEND_ID_BYTES;
    return new Uint8Array(ids.buffer, at - SEND_ID_BYTES, SEND_ID_BYTES);
  };
}
