import type { Address } from '@solana/kit';
import type { View } from '../chain/accounts.ts';
import type { Chain } from '../chain/chain.ts';
import { readAccountForm } from '../encode/account.ts';
import { encodeMintAmount } from '../encode/token.ts';
import type { Json } from '../json/value.ts';
import { type AccountState, isTokenProgram, mintOf, tokenAccountOf } from '../protocol/account.ts';
import { addressBytes, TOKEN_2022_PROGRAM } from '../protocol/address.ts';
import { invalidParams, type Params } from '../request/params.ts';
import * as read from '../request/params.ts';
import { encodeRow, type Filter, found, type Scan } from './account.ts';
import { inContext, method, type NamedMethods } from './method.ts';

const LARGEST_MAX = 20;

/** Token balances, supplies, and the token accounts of an owner, a delegate or a mint. */
export const TOKEN_METHODS: NamedMethods = {
  getTokenAccountBalance: method(1, 1, (chain, [address, options]) => {
    const key = read.address(address);
    const view = read.view(chain, read.commitmentConfig(options));
    const token = tokenAccountOf(existing(view, key, 'could not find account'));
    if (token === undefined) throw invalidParams('Invalid param: not a Token account');
    return inContext(view.slot, amountOf(view, existingMint(view, token.mint), token.amount));
  }),
  getTokenSupply: method(1, 1, (chain, [address, options]) => {
    const key = read.address(address);
    const view = read.view(chain, read.commitmentConfig(options));
    const state = existing(view, key, 'could not find account');
    if (!isTokenProgram(state.owner)) throw invalidParams('Invalid param: not a Token mint');
    const mint = mintOf(state);
    if (mint === undefined) throw invalidParams('Invalid param: mint could not be unpacked');
    return inContext(view.slot, amountOf(view, state, mint.supply));
  }),
  getTokenLargestAccounts: method(1, 1, (chain, [address, options]) => {
    const key = read.address(address);
    const view = read.view(chain, read.commitmentConfig(options));
    const mint = existingMint(view, key);
    const form = readAccountForm({}, 'base64');
    const ofMint = { owner: mint.owner, filters: [hasAt(0, addressBytes(key))], form, isSorted: false };
    const balances = [...found(view, ofMint)].flatMap(([holder, state]) => {
      const amount = tokenAccountOf(state)?.amount;
      return amount === undefined ? [] : [{ holder, amount }];
    });
    const largest = balances.sort((one, other) => Number(other.amount - one.amount)).slice(0, LARGEST_MAX);
    const rows = largest.map(({ holder, amount }) => ({ address: holder, ...amountOf(view, mint, amount) }));
    return inContext(view.slot, rows);
  }),
  getTokenAccountsByOwner: method(2, 1, (chain, params) =>
    tokenAccounts(chain, params, (owner) => hasAt(32, owner)),
  ),
  getTokenAccountsByDelegate: method(2, 1, (chain, params) =>
    tokenAccounts(chain, params, (delegate) =>
      hasAt(72, Buffer.concat([Uint8Array.of(1, 0, 0, 0), delegate])),
    ),
  ),
};

/** The token accounts of an owner or delegate, by mint or token program. */
function tokenAccounts(
  chain: Chain,
  [key, selection, options]: Params,
  belongsTo: (key: Uint8Array) => Filter,
): Json {
  const belongs = belongsTo(addressBytes(read.address(key)));
  const config = read.config(options, 'RpcAccountInfoConfig');
  const form = readAccountForm(config, 'binary');
  const view = read.view(chain, config);
  const { program, filter } = readSelection(view, selection);
  const isToken: Filter = (state) => tokenAccountOf(state) !== undefined;
  const scan: Scan = { owner: program, filters: [belongs, filter, isToken], form, isSorted: true };
  const rows = Array.from(found(view, scan), ([address, state]) => encodeRow(view, scan, address, state));
  return inContext(view.slot, rows);
}

function hasAt(at: number, bytes: Uint8Array): Filter {
  return ({ data }) => Buffer.compare(data.subarray(at, at + bytes.length), bytes) === 0;
}

function readSelection(view: View, value: Json | undefined): Readonly<{ program: Address; filter: Filter }> {
  const selection = read.struct(value, 'enum RpcTokenAccountsFilter');
  if (selection.mint !== undefined) {
    const mint = read.address(selection.mint);
    return { program: existingMint(view, mint).owner, filter: hasAt(0, addressBytes(mint)) };
  }
  if (selection.programId === undefined)
    throw invalidParams('Invalid params: invalid value: map, expected map with a single key.');
  const program = read.address(selection.programId);
  if (!isTokenProgram(program)) throw invalidParams('Invalid param: unrecognized Token program id');
  return { program, filter: () => true };
}

function existing(view: View, address: Address, complaint: string): AccountState {
  const state = view.account(address);
  if (state === undefined) throw invalidParams(`Invalid param: ${complaint}`);
  return state;
}

/** The account of a mint; Agave looks at its data before it looks at its owner. */
function existingMint(view: View, address: Address): AccountState {
  const state = existing(view, address, 'could not find mint');
  if (mintOf({ ...state, owner: TOKEN_2022_PROGRAM }) === undefined)
    throw invalidParams('Invalid param: Token mint could not be unpacked');
  if (!isTokenProgram(state.owner)) throw invalidParams('Invalid param: not a Token mint');
  return state;
}

function amountOf(view: View, mint: AccountState, amount: bigint) {
  return encodeMintAmount(amount, mint, view.account);
}
