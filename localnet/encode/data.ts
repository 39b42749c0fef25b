/*
 * Account data as text. What is large is made a slice at a time while it is written, because an account has up to
 * 10 MiB and its reader may be slow.
 */
import { constants, zstdCompressSync } from 'node:zlib';
import { isOption, unwrapOption } from '@solana/kit';
import { type Json, piecesJson } from '../json/value.ts';

/** A multiple of 3, so that the slices' base64 stands together without padding. */
const SLICE_BYTES = 96 * 1024;
const AT_ONCE_BYTES = 4 * 1024;

/** Base64 of bytes that do not change. */
export function base64Json(data: Uint8Array): Json {
  return data.length <= AT_ONCE_BYTES ? base64Of(data) : piecesJson(() => base64Pieces(data));
}

/** Base64 of the zstd frame of bytes that do not change; large ones are compressed when they are written. */
export function zstdJson(data: Uint8Array): Json {
  if (data.length <= AT_ONCE_BYTES) return base64Of(zstdFrame(data));
  return piecesJson(() => base64Pieces(zstdFrame(data)));
}

/** The byte of a frame behind its magic number and its descriptor, where its content's length is left out. */
const WINDOW_AT = 5;
const WINDOW_2_MIB = 0x58;

/** A frame that begins as those of Agave's encoder, which does not know the length: without it, with the usual window. */
function zstdFrame(data: Uint8Array): Uint8Array {
  const frame = zstdCompressSync(data, { params: { [constants.ZSTD_c_contentSizeFlag]: 0 } });
  frame[WINDOW_AT] = WINDOW_2_MIB;
  return frame;
}

function* base64Pieces(data: Uint8Array): Generator<string> {
  yield '"';
  for (let from = 0; from < data.length; from += SLICE_BYTES) {
    yield base64Of(data.subarray(from, from + SLICE_BYTES));
  }
  yield '"';
}

function base64Of(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}

/** Writes what a program's client decoded as JSON; `own` gives what Agave writes otherwise, by the member's name. */
export function encodeDecoded(
  name: string,
  value: unknown,
  own: (name: string, value: unknown) => Json | undefined,
): Json {
  if (isOption(value)) return encodeDecoded(name, unwrapOption(value), own);
  if (value === null || value === undefined) return null;
  const written = own(name, value);
  if (written !== undefined) return written;
  if (value instanceof Uint8Array) return base64Of(value);
  if (value instanceof Map) return [...value];
  if (Array.isArray(value)) return value.map((item) => encodeDecoded(name, item, own));
  if (typeof value !== 'object') return value as Json; // a text, a number or a boolean
  return Object.fromEntries(
    Object.entries(value).map(([member, each]) => [member, encodeDecoded(member, each, own)] as const),
  );
}
