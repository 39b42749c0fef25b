import { type Address, getBase58Decoder } from '@solana/kit';
import type { Json, JsonObject } from '../json/value.ts';
import type { AccountState, ReadAccount } from '../protocol/account.ts';
import { isAbsent, RpcFailure } from '../request/params.ts';
import * as read from '../request/params.ts';
import { base64Json, zstdJson } from './data.ts';
import { parseAccount } from './parsed-account.ts';

/** How account data is put into JSON. `binary` is the old default: a bare base58 string. */
type AccountEncoding = 'binary' | 'base58' | 'base64' | 'base64+zstd' | 'jsonParsed';

type DataSlice = Readonly<{ offset: bigint; length: bigint }>;

export type AccountForm = Readonly<{ encoding: AccountEncoding; slice: DataSlice | undefined }>;

const ENCODINGS = ['binary', 'base64', 'base58', 'jsonParsed', 'base64+zstd'] as const;
const BASE58_BYTES_MAX = 128;
const base58 = getBase58Decoder();

export function readAccountForm(config: JsonObject, fallback: AccountEncoding): AccountForm {
  return {
    encoding: read.variant(config.encoding, ENCODINGS, fallback),
    slice: readDataSlice(config.dataSlice),
  };
}

function readDataSlice(value: Json | undefined): DataSlice | undefined {
  if (isAbsent(value)) return undefined;
  const { offset, length } = read.struct(value, 'struct UiDataSliceConfig', 'offset', 'length');
  return { offset: read.u64(offset, 'usize'), length: read.u64(length, 'usize') };
}

/** An account in Agave's form. `account` finds what jsonParsed needs besides it. */
export function encodeAccount(key: Address, state: AccountState, form: AccountForm, account: ReadAccount) {
  return {
    data: encodeData(key, state, form, account),
    executable: state.executable,
    lamports: state.lamports,
    owner: state.owner,
    rentEpoch: state.rentEpoch,
    space: state.data.length,
  };
}

function encodeData(key: Address, state: AccountState, form: AccountForm, account: ReadAccount): Json {
  const parsed = form.encoding === 'jsonParsed' ? parseAccount(state, key, account) : undefined;
  if (parsed !== undefined) return parsed;
  const data = sliceOf(state.data, form.slice);
  switch (form.encoding) {
    case 'binary':
      return base58Text(data);
    case 'base58':
      return [base58Text(data), 'base58'];
    case 'base64':
    case 'jsonParsed':
      return [base64Json(data), 'base64'];
    case 'base64+zstd':
      return [zstdJson(data), 'base64+zstd'];
  }
}

function base58Text(data: Uint8Array): string {
  if (data.length <= BASE58_BYTES_MAX) return base58.decode(data);
  throw new RpcFailure(
    -32600,
    `Encoded binary (base 58) data should be less than ${BASE58_BYTES_MAX} bytes, please use Base64 encoding.`,
  );
}

function sliceOf(data: Uint8Array, slice: DataSlice | undefined): Uint8Array {
  if (slice === undefined) return data;
  const length = BigInt(data.length);
  const start = slice.offset < length ? slice.offset : length;
  const end = start + slice.length < length ? start + slice.length : length;
  return data.subarray(Number(start), Number(end));
}
