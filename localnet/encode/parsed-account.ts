/*
 * jsonParsed accounts, as Agave's account decoder gives them: token accounts and mints without extensions, the
 * upgradeable loader, nonces. What Agave cannot parse stays base64; what it can and this file cannot is refused, so
 * that no answer is another than Agave's.
 */
import type { Address } from '@solana/kit';
import { base64Json, decimalText, encodeTokenAmount } from './data.ts';
import type { Json } from '../json/value.ts';
import { type AccountState, hasExtensions, mintOf, tokenAccountOf } from '../protocol/account.ts';
import {
  ADDRESS_LOOKUP_TABLE_PROGRAM,
  addressOf,
  CONFIG_PROGRAM,
  LOADER_V3,
  STAKE_PROGRAM,
  SYSTEM_PROGRAM,
  SYSVAR_OWNER,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
  VOTE_PROGRAM,
} from '../protocol/address.ts';

/** Parsed; not parseable, also for Agave; or parseable for Agave alone. */
type ParsedAccount =
  | Readonly<{ kind: 'parsed'; data: Json }>
  | Readonly<{ kind: 'opaque' }>
  | Readonly<{ kind: 'unsupported'; program: string }>;

type Read = (address: Address) => AccountState | undefined;

const OPAQUE: ParsedAccount = { kind: 'opaque' };
const UNSUPPORTED: ReadonlyMap<Address, string> = new Map<Address, string>([
  [ADDRESS_LOOKUP_TABLE_PROGRAM, 'address-lookup-table'],
  [CONFIG_PROGRAM, 'config'],
  [STAKE_PROGRAM, 'stake'],
  [SYSVAR_OWNER, 'sysvar'],
  [VOTE_PROGRAM, 'vote'],
]);
const MULTISIG_BYTES = 355;
const NONCE_BYTES = 80;

/** Parses an account; `account` finds its mint. */
export function parseAccount(state: AccountState, account: Read): ParsedAccount {
  const unsupported = UNSUPPORTED.get(state.owner);
  if (unsupported !== undefined) return { kind: 'unsupported', program: unsupported };
  if (state.owner === TOKEN_PROGRAM || state.owner === TOKEN_2022_PROGRAM) return parseToken(state, account);
  if (state.owner === LOADER_V3) return parseUpgradeable(state);
  if (state.owner === SYSTEM_PROGRAM) return parseNonce(state);
  return OPAQUE;
}

function parsed(program: string, space: number, type: string, info: Json | undefined): ParsedAccount {
  return { kind: 'parsed', data: { program, parsed: { type, info }, space } };
}

function parseToken(state: AccountState, account: Read): ParsedAccount {
  const program = state.owner === TOKEN_PROGRAM ? 'spl-token' : 'spl-token-2022';
  const space = state.data.length;
  if (hasExtensions(state) || space === MULTISIG_BYTES) return { kind: 'unsupported', program };
  const mint = mintOf(state);
  if (mint !== undefined) {
    return parsed(program, space, 'mint', {
      mintAuthority: mint.mintAuthority ?? null,
      supply: mint.supply.toString(),
      decimals: mint.decimals,
      isInitialized: true,
      freezeAuthority: mint.freezeAuthority ?? null,
    });
  }
  const token = tokenAccountOf(state);
  const mintState = token === undefined ? undefined : account(token.mint);
  const decimals = mintState === undefined ? undefined : mintOf(mintState)?.decimals;
  if (token === undefined || decimals === undefined) return OPAQUE;
  const amountOf = (amount: bigint) => encodeTokenAmount(amount, decimals);
  return parsed(program, space, 'account', {
    mint: token.mint,
    owner: token.owner,
    tokenAmount: amountOf(token.amount),
    delegate: token.delegate,
    state: token.state,
    isNative: token.nativeReserve !== undefined,
    rentExemptReserve: token.nativeReserve === undefined ? undefined : amountOf(token.nativeReserve),
    delegatedAmount: token.delegate === undefined ? undefined : amountOf(token.delegatedAmount),
    closeAuthority: token.closeAuthority,
  });
}

function parseUpgradeable(state: AccountState): ParsedAccount {
  const { data } = state;
  const make = (type: string, info?: Json) => parsed('bpf-upgradeable-loader', data.length, type, info);
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const authorityAt = (at: number) => (data[at] === 1 ? addressOf(data.subarray(at + 1, at + 33)) : null);
  const codeAt = (at: number) => [base64Json(data.subarray(at)), 'base64'];
  if (data.length < 4) return OPAQUE;
  const tag = view.getUint32(0, true);
  if (tag === 0) return make('uninitialized');
  if (tag === 1 && data.length >= 37) return make('buffer', { authority: authorityAt(4), data: codeAt(37) });
  if (tag === 2 && data.length >= 36)
    return make('program', { programData: addressOf(data.subarray(4, 36)) });
  if (tag === 3 && data.length >= 45) {
    return make('programData', {
      slot: view.getBigUint64(4, true),
      authority: authorityAt(12),
      data: codeAt(45),
    });
  }
  return OPAQUE;
}

function parseNonce(state: AccountState): ParsedAccount {
  const { data } = state;
  if (data.length !== NONCE_BYTES) return OPAQUE;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (view.getUint32(0, true) > 1) return OPAQUE;
  if (view.getUint32(4, true) !== 1) return OPAQUE;
  return parsed('nonce', data.length, 'initialized', {
    authority: addressOf(data.subarray(8, 40)),
    blockhash: addressOf(data.subarray(40, 72)),
    feeCalculator: { lamportsPerSignature: decimalText(view.getBigUint64(72, true), 0) },
  });
}
