import { getAddressDecoder, getAddressEncoder, type Address, type ReadonlyUint8Array } from '@solana/kit';

const MEMO_ENTRIES_MAX = 50_000;
const encoder = getAddressEncoder();
const decoder = getAddressDecoder();

/** The address with these 32 bytes. */
export function addressOf(bytes: ReadonlyUint8Array): Address {
  return decoder.decode(bytes);
}

const encoded = new Map<Address, Uint8Array>();

/** The 32 bytes of an address. Remembered, because base58 is slow and the same addresses recur; do not write to them. */
export function addressBytes(address: Address): Uint8Array {
  const known = encoded.get(address);
  if (known !== undefined) return known;
  const bytes = new Uint8Array(encoder.encode(address));
  if (encoded.size >= MEMO_ENTRIES_MAX) encoded.clear();
  encoded.set(address, bytes);
  return bytes;
}
