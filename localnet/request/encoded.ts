/*
 * A transaction or a message as a parameter: its wire bytes in base58 or base64, within Agave's sizes and refused in the
 * words of the Rust crates that it decodes with.
 */
import { getBase58Encoder } from '@solana/kit';
import type { Json } from '../json/value.ts';
import { debugText } from '../protocol/debug-text.ts';
import { readTransaction, type Transaction } from '../protocol/transaction.ts';
import { invalidParams, isAbsent, string } from './params.ts';

const RAW_BYTES_MAX = 1_232;
const BASE58_CHARACTERS_MAX = 1_683;
const BASE64_CHARACTERS_MAX = 1_644;
const TRANSACTION = 'solana_transaction::versioned::VersionedTransaction';
const MESSAGE = 'solana_message::versions::VersionedMessage';
const PADDING = 0x3d;
/** One signature of zeros. */
const UNSIGNED = Uint8Array.of(1, ...new Uint8Array(64));
const base58 = getBase58Encoder();

/** The encodings of the parameter; base58 is the default. */
type WireEncoding = 'base58' | 'base64';

/** Reads a transaction in the encoding of its configuration, of which Agave names the ones it supports. */
export function wireTransaction(value: Json | undefined, encoding: Json | undefined): Transaction {
  const text = string(value);
  const isSupported = isAbsent(encoding) || encoding === 'base58' || encoding === 'base64';
  if (!isSupported)
    throw invalidParams(`unsupported encoding: ${string(encoding)}. Supported encodings: base58, base64`);
  return transactionFrom(decode(text, encoding ?? 'base58', TRANSACTION));
}

/** Reads a message: a transaction without its signatures, of which the fee is what its header counts. */
export function wireMessage(value: Json | undefined): Transaction {
  const message = decode(string(value), 'base64', MESSAGE);
  return transactionFrom(Buffer.concat([UNSIGNED, message]), MESSAGE);
}

/** Reads wire bytes, or refuses what is no `type`. */
export function transactionFrom(wire: Uint8Array, type: string = TRANSACTION): Transaction {
  const read = readTransaction(wire);
  if (read.kind === 'read') return read.transaction;
  throw invalidParams(`failed to deserialize ${type}: ${read.reason}`);
}

function decode(text: string, encoding: WireEncoding, type: string): Uint8Array {
  const charactersMax = encoding === 'base58' ? BASE58_CHARACTERS_MAX : BASE64_CHARACTERS_MAX;
  if (text.length > charactersMax) {
    throw invalidParams(
      `${encoding} encoded ${type} too large: ${text.length} bytes (max: encoded/raw ${charactersMax}/${RAW_BYTES_MAX})`,
    );
  }
  const fault = encoding === 'base58' ? base58Fault(text) : base64Fault(text);
  if (fault !== undefined) throw invalidParams(`invalid ${encoding} encoding: ${fault}`);
  const wire = encoding === 'base58' ? base58.encode(text) : Buffer.from(text, 'base64');
  if (wire.length > RAW_BYTES_MAX)
    throw invalidParams(`decoded ${type} too large: ${wire.length} bytes (max: ${RAW_BYTES_MAX} bytes)`);
  return new Uint8Array(wire);
}

/** Why text is no base58, as the crate `bs58` has it; undefined when it is. */
function base58Fault(text: string): string | undefined {
  const at = text.search(/[^1-9A-HJ-NP-Za-km-z]/);
  if (at < 0) return undefined;
  const index = Buffer.byteLength(text.slice(0, at));
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
  if (character > '\x7f') return `NonAsciiCharacter { index: ${index} }`;
  return `InvalidCharacter { character: ${debugText(character, "'")}, index: ${index} }`;
}

/** Why text is no canonical base64 with padding, as the crate `base64` has it; undefined when it is. */
function base64Fault(text: string): string | undefined {
  const bytes = Buffer.from(text);
  const isSymbol = (byte: number | undefined) => /[A-Za-z0-9+/]/.test(String.fromCharCode(byte ?? 0));
  const invalidByte = (at: number) => `InvalidByte(${at}, ${bytes[at]})`;
  const last = bytes.length - 1;
  // A newline at the end is the usual mistake, so the crate names it before it decodes anything.
  if (bytes.length % 4 === 1 && bytes[last] !== PADDING && !isSymbol(bytes[last])) return invalidByte(last);
  const quadAt = last - (last % 4);
  const wrong = bytes.findIndex((byte, at) => !isSymbol(byte) && (at < quadAt || byte !== PADDING));
  const padding = bytes.indexOf(PADDING, Math.max(0, quadAt));
  const symbols = (padding < 0 ? bytes.length : padding) - quadAt;
  if (wrong >= 0 && (wrong < quadAt || padding < 0 || wrong < padding)) return invalidByte(wrong);
  if (padding >= 0 && (symbols < 2 || bytes.subarray(padding).some((byte) => byte !== PADDING)))
    return invalidByte(padding);
  if (bytes.length === 0) return undefined;
  if (symbols < 2) return `InvalidLength(${quadAt + symbols})`;
  if (bytes.length % 4 !== 0) return 'InvalidPadding';
  if (Buffer.from(text, 'base64').toString('base64') === text) return undefined;
  return `InvalidLastSymbol(${quadAt + symbols - 1}, ${bytes[quadAt + symbols - 1]})`;
}
