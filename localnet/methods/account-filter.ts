/*
 * The filters of getProgramAccounts: at most four, all of which must hold.
 */
import { getBase58Encoder } from '@solana/kit';
import type { AccountState } from '../chain/account.ts';
import { isJsonArray, isJsonObject, type Json, type JsonObject } from '../json/value.ts';
import { invalidParams } from '../rpc/failure.ts';
import { isBase58, readList, readString, readU64, readVariant, wrongType } from '../rpc/params.ts';

/** Whether an account passes. */
export type Filter = (state: AccountState) => boolean;

const FILTERS_MAX = 4;
const MEMCMP_BYTES_MAX = 128;
const BASE58_CHARACTERS_MAX = 175;
const BASE64_CHARACTERS_MAX = 172;
const TOKEN_ACCOUNT_BYTES = 165;
const MULTISIG_BYTES = 355;
const base58 = getBase58Encoder();

/** Reads the list of filters; none when absent. */
export function readFilters(value: Json | undefined): Filter[] {
  if (value === undefined || value === null) return [];
  const listed = readList(value);
  if (listed.length > FILTERS_MAX) throw invalidParams(`Too many filters provided; max ${FILTERS_MAX}`);
  return listed.map(readFilter);
}

function readFilter(value: Json): Filter {
  if (value === 'tokenAccountState') return isTokenAccount;
  if (!isJsonObject(value)) throw wrongType(value, 'enum RpcFilterType');
  const [name, ...others] = Object.keys(value);
  if (name === undefined || others.length > 0)
    throw invalidParams('Invalid params: invalid value: map, expected map with a single key.');
  if (name === 'dataSize') {
    const size = readU64(value.dataSize);
    return (state) => BigInt(state.data.length) === size;
  }
  if (name === 'memcmp') return readMemcmp(value.memcmp);
  readVariant(name, ['dataSize', 'memcmp', 'tokenAccountState'], 'dataSize');
  throw wrongType(value, 'enum RpcFilterType');
}

function readMemcmp(value: Json | undefined): Filter {
  if (!isJsonObject(value)) throw wrongType(value, 'struct Memcmp');
  for (const name of ['offset', 'bytes']) {
    if (value[name] === undefined) throw invalidParams(`Invalid params: missing field \`${name}\`.`);
  }
  const offset = readU64(value.offset, 'usize');
  const bytes = readBytes(value);
  if (bytes.length > MEMCMP_BYTES_MAX) throw invalidParams('Invalid param: DataTooLarge');
  return function matches(state) {
    if (offset + BigInt(bytes.length) > BigInt(state.data.length)) return false;
    const start = Number(offset);
    return Buffer.compare(state.data.subarray(start, start + bytes.length), bytes) === 0;
  };
}

function readBytes(value: JsonObject): Uint8Array {
  if (isJsonArray(value.bytes))
    return Uint8Array.from(value.bytes, (byte) => Number(readU64(byte, 'u8', 255n)));
  const text = readString(value.bytes);
  if (readVariant(value.encoding, ['base58', 'base64', 'bytes'], 'base58') === 'base64') {
    if (text.length > BASE64_CHARACTERS_MAX) throw invalidParams('Invalid param: DataTooLarge');
    const decoded = Buffer.from(text, 'base64');
    if (decoded.toString('base64') === text) return decoded;
    throw invalidParams('Invalid param: Base64DecodeError');
  }
  if (text.length > BASE58_CHARACTERS_MAX) throw invalidParams('Invalid param: DataTooLarge');
  if (!isBase58(text)) throw invalidParams('Invalid param: Base58DecodeError');
  return new Uint8Array(base58.encode(text));
}

/** An initialized token account of either token program. */
function isTokenAccount({ data }: AccountState): boolean {
  if (data.length < TOKEN_ACCOUNT_BYTES || data[108] === 0) return false;
  return (
    data.length === TOKEN_ACCOUNT_BYTES || (data.length !== MULTISIG_BYTES && data[TOKEN_ACCOUNT_BYTES] === 2)
  );
}
