import type { Address } from '@solana/kit';
import type { View } from '../chain/accounts.ts';
import { readAccountForm } from '../encode/account.ts';
import { encodeTokenAmount } from '../encode/data.ts';
import { isJsonObject, type Json } from '../json/value.ts';
import { encodeRow, type Filter, found, type Scan } from './account.ts';
import { inContext, type NamedMethods } from './method.ts';
import {
  type AccountState,
  hasUiAmountExtension,
  isTokenProgram,
  type Mint,
  mintOf,
  tokenAccountOf,
} from '../protocol/account.ts';
import { addressBytes } from '../protocol/address.ts';
import { invalidParams, readAddress, readConfig, readView, wrongType } from '../request/params.ts';

const OWNER_AT = 32;

/** Token balances, supplies, and the token accounts of an owner. */
export const TOKEN_METHODS: NamedMethods = {
  getTokenAccountBalance: {
    required: 1,
    optional: 1,
    answer: (chain, [address, options]) => {
      const key = readAddress(address);
      const view = readView(chain, readConfig(options, 'CommitmentConfig'));
      const state = existing(view, key, 'could not find account');
      const token = tokenAccountOf(state);
      if (token === undefined) throw invalidParams('Invalid param: not a Token account');
      return inContext(view.slot, encodeTokenAmount(token.amount, plainMint(view, token.mint).decimals));
    },
  },
  getTokenSupply: {
    required: 1,
    optional: 1,
    answer: (chain, [address, options]) => {
      const key = readAddress(address);
      const view = readView(chain, readConfig(options, 'CommitmentConfig'));
      existing(view, key, 'could not find account');
      const mint = plainMint(view, key);
      return inContext(view.slot, encodeTokenAmount(mint.supply, mint.decimals));
    },
  },
  getTokenAccountsByOwner: {
    required: 2,
    optional: 1,
    answer: (chain, [owner, selection, options]) => {
      const ownerAddress = readAddress(owner);
      const config = readConfig(options, 'RpcAccountInfoConfig');
      const form = readAccountForm(config, 'binary');
      const view = readView(chain, config);
      const { program, filter } = readSelection(view, selection);
      const bytes = addressBytes(ownerAddress);
      const isOwned: Filter = (state) =>
        Buffer.compare(state.data.subarray(OWNER_AT, OWNER_AT + 32), bytes) === 0 &&
        tokenAccountOf(state) !== undefined;
      const scan: Scan = { owner: program, filters: [isOwned, filter], form, isSorted: true };
      return inContext(
        view.slot,
        Array.from(found(view, scan), ([address, state]) => encodeRow(view, scan, address, state)),
      );
    },
  },
};

function readSelection(view: View, value: Json | undefined): Readonly<{ program: Address; filter: Filter }> {
  if (!isJsonObject(value)) throw wrongType(value, 'enum RpcTokenAccountsFilter');
  if (value.mint !== undefined) {
    const mint = readAddress(value.mint);
    const state = existing(view, mint, 'could not find mint');
    if (!isTokenProgram(state.owner)) throw invalidParams('Invalid param: not a Token mint');
    if (mintOf(state) === undefined) throw invalidParams('Invalid param: Token mint could not be unpacked');
    const bytes = addressBytes(mint);
    return { program: state.owner, filter: ({ data }) => Buffer.compare(data.subarray(0, 32), bytes) === 0 };
  }
  if (value.programId === undefined) throw wrongType(value, 'enum RpcTokenAccountsFilter');
  const program = readAddress(value.programId);
  if (!isTokenProgram(program)) throw invalidParams('Invalid param: unrecognized Token program id');
  return { program, filter: () => true };
}

function existing(view: View, address: Address, complaint: string): AccountState {
  const state = view.account(address);
  if (state === undefined) throw invalidParams(`Invalid param: ${complaint}`);
  return state;
}

/** A mint whose amounts are shown as they are; one that scales them would need its own arithmetic. */
function plainMint(view: View, address: Address): Mint {
  const state = existing(view, address, 'could not find mint');
  const mint = mintOf(state);
  if (mint === undefined) throw invalidParams('Invalid param: not a Token mint');
  if (hasUiAmountExtension(state))
    throw invalidParams('mints that scale their amounts are not offered by this node');
  return mint;
}
