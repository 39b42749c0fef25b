import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import type { Begun } from './begun.ts';

/** No null and no error that matters is longer. */
export const SAYING_BYTES_MAX = 4_096;

/**
 * The bytes of a whole answer as they can be read, so that a null or an error is known through compression too;
 * `undefined` when what is compressed becomes longer than any of them, or cannot be read.
 */
export function sayingOf({ bytes, encoding }: Extract<Begun, { kind: 'whole' }>): Uint8Array | undefined {
  if (encoding === undefined) return bytes;
  if (bytes.length > SAYING_BYTES_MAX) return undefined;
  try {
    return DECODERS[encoding]?.(bytes, { maxOutputLength: SAYING_BYTES_MAX });
  } catch {
    return undefined; // it is longer, or not ours to judge
  }
}

type Decode = (bytes: Uint8Array, options: { maxOutputLength: number }) => Uint8Array;

const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};
