/*
 * A transaction as a parameter: text in base58 or base64, of bytes that are one.
 */
import { getBase58Encoder } from '@solana/kit';
import { readTransaction, type Transaction } from '../chain/transaction.ts';
import type { Json } from '../json/value.ts';
import { invalidParams } from '../rpc/failure.ts';
import { isBase58, readString } from '../rpc/params.ts';

const RAW_BYTES_MAX = 1_232;
const BASE58_CHARACTERS_MAX = 1_683;
const BASE64_CHARACTERS_MAX = 1_644;
const TYPE = 'solana_transaction::versioned::VersionedTransaction';
const base58 = getBase58Encoder();

/** The encodings of the parameter; base58 is the default. */
export type WireEncoding = 'base58' | 'base64';

/** Reads the encoding; Agave names the ones it supports. */
export function readWireEncoding(value: Json | undefined): WireEncoding {
  if (value === undefined || value === null) return 'base58';
  if (value === 'base58' || value === 'base64') return value;
  throw invalidParams(`unsupported encoding: ${readString(value)}. Supported encodings: base58, base64`);
}

/** Reads a transaction, or refuses with -32602. */
export function readWireTransaction(value: Json | undefined, encoding: WireEncoding): Transaction {
  return transactionFrom(decode(readString(value), encoding, TYPE));
}

/** Reads bytes as a transaction, or refuses with -32602. */
export function transactionFrom(wire: Uint8Array): Transaction {
  const read = readTransaction(wire);
  if (read.kind === 'read') return read.transaction;
  throw invalidParams(`failed to deserialize ${TYPE}: ${read.reason}`);
}

/** Decodes text, within Agave's sizes. */
export function decode(text: string, encoding: WireEncoding, type: string): Uint8Array {
  const charactersMax = encoding === 'base58' ? BASE58_CHARACTERS_MAX : BASE64_CHARACTERS_MAX;
  if (text.length > charactersMax) {
    throw invalidParams(
      `${encoding} encoded ${type} too large: ${text.length} bytes (max: encoded/raw ${charactersMax}/${RAW_BYTES_MAX})`,
    );
  }
  const wire = encoding === 'base58' ? decodeBase58(text) : decodeBase64(text);
  if (wire.length > RAW_BYTES_MAX) {
    throw invalidParams(`decoded ${type} too large: ${wire.length} bytes (max: ${RAW_BYTES_MAX} bytes)`);
  }
  return wire;
}

function decodeBase58(text: string): Uint8Array {
  if (!isBase58(text)) throw invalidParams('invalid base58 encoding: InvalidCharacter');
  return new Uint8Array(base58.encode(text));
}

function decodeBase64(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw invalidParams('invalid base64 encoding: InvalidByte');
  return new Uint8Array(bytes);
}
