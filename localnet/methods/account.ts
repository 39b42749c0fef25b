import { type Address, getBase58Encoder } from '@solana/kit';
import type { View } from '../chain/accounts.ts';
import { type AccountForm, encodeAccount, readAccountForm } from '../encode/account.ts';
import { isJsonArray, type Json, type JsonObject, piecesJson, printJsonPieces } from '../json/value.ts';
import { type AccountState, isTokenAccount } from '../protocol/account.ts';
import { addressBytes } from '../protocol/address.ts';
import { invalidParams, isAbsent, isBase58, wrongType } from '../request/params.ts';
import * as read from '../request/params.ts';
import { inContext, method, type NamedMethods } from './method.ts';

const MULTIPLE_ACCOUNTS_MAX = 100;
const LARGEST_MAX = 20;

export const ACCOUNT_METHODS: NamedMethods = {
  getBalance: method(1, 1, (chain, [address, config]) => {
    const key = read.address(address);
    const view = read.view(chain, read.config(config, 'RpcContextConfig'));
    return inContext(view.slot, view.account(key)?.lamports ?? 0n);
  }),
  getAccountInfo: method(1, 1, (chain, [address, options]) => {
    const key = read.address(address);
    const config = read.config(options, 'RpcAccountInfoConfig');
    const form = readAccountForm(config, 'binary');
    const view = read.view(chain, config);
    return inContext(view.slot, encodeFound(view, key, form));
  }),
  getMultipleAccounts: method(1, 1, (chain, [addresses, options]) => {
    const keys = read.inputs(addresses, MULTIPLE_ACCOUNTS_MAX, read.address);
    const config = read.config(options, 'RpcAccountInfoConfig');
    const form = readAccountForm(config, 'base64');
    const view = read.view(chain, config);
    const accounts = keys.map((key) => encodeFound(view, key, form));
    return inContext(view.slot, accounts);
  }),
  getProgramAccounts: method(1, 1, (chain, [program, options]) => {
    const owner = read.address(program);
    const config = read.config(options, 'RpcProgramAccountsConfig');
    const form = readAccountForm(config, 'binary');
    const filters = readFilters(config.filters);
    const hasContext = read.boolean(config.withContext, false);
    const isSorted = read.boolean(config.sortResults, true);
    const view = read.view(chain, config);
    const rows = scanRows(view, { owner, filters, form, isSorted });
    return hasContext ? inContext(view.slot, rows) : rows;
  }),
  getSupply: method(0, 1, (chain, [options]) => {
    const config = read.config(options, 'RpcSupplyConfig');
    read.boolean(config.excludeNonCirculatingAccountsList, false);
    const view = read.view(chain, config);
    let total = 0n;
    for (const { lamports } of balances(view)) total += lamports;
    // Nothing is locked up here, so everything circulates.
    return inContext(view.slot, {
      circulating: total,
      nonCirculating: 0,
      nonCirculatingAccounts: [],
      total,
    });
  }),
  getLargestAccounts: method(0, 1, (chain, [options]) => {
    const config = read.config(options, 'RpcLargestAccountsConfig');
    const filter = read.variant(config.filter, ['circulating', 'nonCirculating'], 'circulating');
    read.boolean(config.sortResults, true);
    const view = read.view(chain, config);
    const all = filter === 'nonCirculating' ? [] : [...balances(view)];
    const sorted = all.sort((one, other) => Number(other.lamports - one.lamports));
    return inContext(view.slot, sorted.slice(0, LARGEST_MAX));
  }),
};

function encodeFound(view: View, key: Address, form: AccountForm): Json {
  const state = view.account(key);
  return state === undefined ? null : encodeAccount(key, state, form, view.account);
}

function* balances(view: View): Generator<Readonly<{ address: Address; lamports: bigint }>> {
  for (const address of view.candidates()) {
    const lamports = view.account(address)?.lamports;
    if (lamports !== undefined) yield { address, lamports };
  }
}

/*
 * All accounts of a program that pass filters, at one moment. The addresses are taken at once; each account is read
 * when it is written out, from the held view, so a scan of any size holds one slice of one account at a time.
 */

export type Scan = Readonly<{
  owner: Address;
  filters: readonly Filter[];
  form: AccountForm;
  isSorted: boolean;
}>;

/** The accounts found, one at a time. */
export function* found(view: View, scan: Scan): Generator<readonly [Address, AccountState]> {
  for (const address of addressesOf(view, scan)) {
    const state = view.account(address);
    if (state?.owner === scan.owner && scan.filters.every((filter) => filter(state))) yield [address, state];
  }
}

function addressesOf(view: View, scan: Scan): readonly Address[] {
  const addresses = [...view.candidates(scan.owner)];
  if (!scan.isSorted) return addresses;
  return addresses
    .map((address) => ({ address, bytes: addressBytes(address) }))
    .sort((one, other) => Buffer.compare(one.bytes, other.bytes))
    .map(({ address }) => address);
}

export function encodeRow(view: View, scan: Scan, address: Address, state: AccountState): Json {
  return { account: encodeAccount(address, state, scan.form, view.account), pubkey: address };
}

/** The rows of a scan, each made when it is written. */
function scanRows(view: View, scan: Scan): Json {
  // These two can refuse an account, and must do so before the first byte.
  if (scan.form.encoding === 'binary' || scan.form.encoding === 'base58') {
    for (const [address, state] of found(view, scan)) encodeRow(view, scan, address, state);
  }
  const release = view.hold();
  return piecesJson(function* () {
    try {
      let before = '[';
      for (const [address, state] of found(view, scan)) {
        yield* printJsonPieces(encodeRow(view, scan, address, state), before);
        before = ',';
      }
      yield before === '[' ? '[]' : ']';
    } finally {
      release();
    }
  });
}

/*
 * The filters of getProgramAccounts: at most four, all of which must hold.
 */

export type Filter = (state: AccountState) => boolean;

const FILTERS_MAX = 4;
const MEMCMP_BYTES_MAX = 128;
const BASE58_CHARACTERS_MAX = 175;
const BASE64_CHARACTERS_MAX = 172;
const base58 = getBase58Encoder();

function readFilters(value: Json | undefined): Filter[] {
  if (isAbsent(value)) return [];
  const listed = read.list(value);
  if (listed.length > FILTERS_MAX) throw invalidParams(`Too many filters provided; max ${FILTERS_MAX}`);
  return listed.map(readFilter);
}

function readFilter(value: Json): Filter {
  if (value === 'tokenAccountState') return (state) => isTokenAccount(state.data);
  const filter = read.struct(value, 'enum RpcFilterType');
  const [name, ...others] = Object.keys(filter);
  if (name === undefined || others.length > 0)
    throw invalidParams('Invalid params: invalid value: map, expected map with a single key.');
  if (name === 'dataSize') {
    const size = read.u64(filter.dataSize);
    return (state) => BigInt(state.data.length) === size;
  }
  if (name === 'memcmp') return readMemcmp(filter.memcmp);
  read.variant(name, ['dataSize', 'memcmp', 'tokenAccountState'], 'dataSize');
  throw wrongType(value, 'enum RpcFilterType');
}

function readMemcmp(value: Json | undefined): Filter {
  const memcmp = read.struct(value, 'struct Memcmp', 'offset', 'bytes');
  const offset = read.u64(memcmp.offset, 'usize');
  const bytes = readBytes(memcmp);
  if (bytes.length > MEMCMP_BYTES_MAX) throw invalidParams('Invalid param: DataTooLarge');
  return function matches(state) {
    if (offset + BigInt(bytes.length) > BigInt(state.data.length)) return false;
    const start = Number(offset);
    return Buffer.compare(state.data.subarray(start, start + bytes.length), bytes) === 0;
  };
}

function readBytes(value: JsonObject): Uint8Array {
  if (isJsonArray(value.bytes))
    return Uint8Array.from(value.bytes, (byte) => Number(read.u64(byte, 'u8', 255n)));
  const text = read.string(value.bytes);
  if (read.variant(value.encoding, ['base58', 'base64', 'bytes'], 'base58') === 'base64') {
    if (text.length > BASE64_CHARACTERS_MAX) throw invalidParams('Invalid param: DataTooLarge');
    const decoded = Buffer.from(text, 'base64');
    if (decoded.toString('base64') === text) return decoded;
    throw invalidParams('Invalid param: Base64DecodeError');
  }
  if (text.length > BASE58_CHARACTERS_MAX) throw invalidParams('Invalid param: DataTooLarge');
  if (!isBase58(text)) throw invalidParams('Invalid param: Base58DecodeError');
  return new Uint8Array(base58.encode(text));
}
