/*
 * jsonParsed accounts, as Agave's account decoder gives them (`account-decoder/src`). What it cannot parse is base64.
 */
import { getAddressLookupTableDecoder } from '@solana-program/address-lookup-table';
import { getStakeStateV2Decoder, type Stake } from '@solana-program/stake';
import { getNonceDecoder, NonceState } from '@solana-program/system';
import { getMultisigDecoder } from '@solana-program/token';
import {
  type Address,
  address,
  type Decoder,
  getStructDecoder,
  getU64Decoder,
  unwrapOption,
} from '@solana/kit';
import * as sysvars from '@solana/sysvars';
import { type Json, type JsonObject, parseJson, piecesJson } from '../json/value.ts';
import {
  type AccountState,
  MULTISIG_BYTES,
  mintOf,
  type ReadAccount,
  tokenAccountOf,
} from '../protocol/account.ts';
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
import { LOOKUP_TABLE_HEADER_BYTES } from '../protocol/transaction.ts';
import { base64Json, encodeDecoded } from './data.ts';
import { encodeExtensions, encodeMintAmount, stateName } from './token.ts';
import { encodeVote } from './vote.ts';

type Parsed = Readonly<{ type: string; info?: Json }>;
type Parse = (state: AccountState, key: Address, account: ReadAccount) => Parsed | undefined;

const NONCE_BYTES = 80;
const VALIDATOR_INFO = address('Va1idator1nfo111111111111111111111111111111');
const FEES_SYSVAR = address('SysvarFees111111111111111111111111111111111');

const PARSERS: Readonly<Record<Address, readonly [program: string, parse: Parse]>> = {
  [SYSTEM_PROGRAM]: ['nonce', parseNonce],
  [TOKEN_PROGRAM]: ['spl-token', parseToken],
  [TOKEN_2022_PROGRAM]: ['spl-token-2022', parseToken],
  [LOADER_V3]: ['bpf-upgradeable-loader', parseUpgradeable],
  [ADDRESS_LOOKUP_TABLE_PROGRAM]: ['address-lookup-table', parseLookupTable],
  [CONFIG_PROGRAM]: ['config', parseConfig],
  [STAKE_PROGRAM]: ['stake', parseStake],
  [VOTE_PROGRAM]: ['vote', parseVote],
  [SYSVAR_OWNER]: ['sysvar', parseSysvar],
};

/** Parses an account; undefined when it cannot be. `account` finds its mint, and the time. */
export function parseAccount(state: AccountState, key: Address, account: ReadAccount): Json | undefined {
  const [program, parse] = PARSERS[state.owner] ?? [];
  if (program === undefined || parse === undefined) return undefined;
  try {
    const parsed = parse(state, key, account);
    return parsed === undefined ? undefined : { program, parsed, space: state.data.length };
  } catch {
    return undefined; // its decoder found it too short
  }
}

function parseToken(state: AccountState, _key: Address, account: ReadAccount): Parsed | undefined {
  if (state.data.length === MULTISIG_BYTES) return parseMultisig(state.data);
  const extensions = encodeExtensions(state);
  const mint = mintOf(state);
  if (mint !== undefined) {
    return { type: 'mint', info: { ...mint, supply: mint.supply.toString(), extensions } };
  }
  const token = tokenAccountOf(state);
  const mintState = token === undefined ? undefined : account(token.mint);
  if (token === undefined || mintState === undefined || mintOf(mintState) === undefined) return undefined;
  const amountOf = (amount: bigint) => encodeMintAmount(amount, mintState, account);
  const info = {
    mint: token.mint,
    owner: token.owner,
    tokenAmount: amountOf(token.amount),
    delegate: token.delegate ?? undefined,
    state: stateName(token.state),
    isNative: token.isNative !== null,
    rentExemptReserve: token.isNative === null ? undefined : amountOf(token.isNative),
    delegatedAmount: token.delegate === null ? undefined : amountOf(token.delegatedAmount),
    closeAuthority: token.closeAuthority ?? undefined,
    extensions,
  };
  return { type: 'account', info };
}

function parseMultisig(data: Uint8Array): Parsed | undefined {
  const { m, n, isInitialized, signers } = getMultisigDecoder().decode(data);
  if (!isInitialized) return undefined;
  const info = {
    numRequiredSigners: m,
    numValidSigners: n,
    isInitialized,
    signers: signers.filter((signer) => signer !== SYSTEM_PROGRAM),
  };
  return { type: 'multisig', info };
}

/** Without an authority, Agave takes its 32 bytes for the beginning of the code. */
function parseUpgradeable({ data }: AccountState): Parsed | undefined {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const tag = view.getUint32(0, true);
  const authorityAt = (at: number) => {
    const authority = data[at] === 1 ? addressOf(data.subarray(at + 1, at + 33)) : null;
    const code = base64Json(data.subarray(authority === null ? at + 1 : at + 33));
    return { authority, data: [code, 'base64'] };
  };
  if (tag === 0) return { type: 'uninitialized' };
  if ((data[tag === 3 ? 12 : 4] ?? 0) > 1 && tag !== 2) return undefined;
  if (tag === 1) return { type: 'buffer', info: authorityAt(4) };
  if (tag === 2) return { type: 'program', info: { programData: addressOf(data.subarray(4, 36)) } };
  if (tag !== 3) return undefined;
  return { type: 'programData', info: { slot: view.getBigUint64(4, true), ...authorityAt(12) } };
}

function parseNonce({ data }: AccountState): Parsed | undefined {
  if (data.length !== NONCE_BYTES) return undefined;
  const { state, authority, blockhash, lamportsPerSignature } = getNonceDecoder().decode(data);
  if (state !== NonceState.Initialized) return undefined;
  const feeCalculator = { lamportsPerSignature: lamportsPerSignature.toString() };
  return { type: 'initialized', info: { authority, blockhash, feeCalculator } };
}

function parseLookupTable(state: AccountState): Parsed | undefined {
  if (state.data.length < LOOKUP_TABLE_HEADER_BYTES) return undefined;
  if (state.data[0] === 0) return { type: 'uninitialized' };
  const data = getAddressLookupTableDecoder().decode(state.data);
  const info = {
    deactivationSlot: data.deactivationSlot.toString(),
    lastExtendedSlot: data.lastExtendedSlot.toString(),
    lastExtendedSlotStartIndex: data.lastExtendedSlotStartIndex,
    authority: unwrapOption(data.authority) ?? undefined,
    addresses: data.addresses,
  };
  return { type: 'lookupTable', info };
}

/** A validator's description of itself: keys after a count, each with whether it must sign, and a text of JSON. */
function parseConfig({ data }: AccountState): Parsed | undefined {
  const keys = Array.from({ length: data[0] ?? 0 }, (_, index) => 1 + index * 33).map((at) => ({
    pubkey: addressOf(data.subarray(at, at + 32)),
    signer: data[at + 32] === 1,
  }));
  if (keys[0]?.pubkey !== VALIDATOR_INFO) return undefined;
  const at = 1 + keys.length * 33;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const length = view.getBigUint64(at, true);
  const text = Buffer.from(data.subarray(at + 8, at + 8 + Number(length))).toString();
  return { type: 'validatorInfo', info: { configData: parseJson(text), keys } };
}

const STAKE_TYPES = {
  Uninitialized: 'uninitialized',
  Initialized: 'initialized',
  Stake: 'delegated',
  RewardsPool: 'rewardsPool',
} as const;

function parseStake({ data }: AccountState): Parsed {
  const state = getStakeStateV2Decoder().decode(data);
  const type = STAKE_TYPES[state.__kind];
  if (!('fields' in state)) return { type };
  const [{ rentExemptReserve, authorized, lockup }, stake] = state.fields;
  const meta = { rentExemptReserve: rentExemptReserve.toString(), authorized, lockup };
  return { type, info: { meta, stake: stake === undefined ? null : encodeStake(stake) } };
}

function encodeStake({ delegation, creditsObserved }: Stake): Json {
  const { voterPubkey: voter, stake, activationEpoch, deactivationEpoch } = delegation;
  const epochs = { activationEpoch: String(activationEpoch), deactivationEpoch: String(deactivationEpoch) };
  return { creditsObserved, delegation: { voter, stake: String(stake), ...epochs } };
}

function parseVote({ data }: AccountState, key: Address): Parsed | undefined {
  const info = encodeVote(data, key);
  return info === undefined ? undefined : { type: 'vote', info };
}

/** Amounts that serde writes as texts, although they are numbers. */
const SYSVAR_TEXTS: ReadonlySet<string> = new Set([
  'lamportsPerByte',
  'lamportsPerSignature',
  'totalPoints',
  'totalRewards',
  'distributedRewards',
]);

function getFeesDecoder(): Decoder<unknown> {
  const calculator = getStructDecoder([['lamportsPerSignature', getU64Decoder()]]);
  return getStructDecoder([['feeCalculator', calculator]]);
}

/** Since Agave 4.1 the first field alone: the threshold is 1 and nothing is burned (SIMD-0194). */
function getRentDecoder(): Decoder<unknown> {
  return getStructDecoder([['lamportsPerByte', getU64Decoder()]]);
}

/** Lists count in a u64, of which these decoders take the lower half for all of it. */
const SYSVAR_LISTS: ReadonlySet<string> = new Set(['recentBlockhashes', 'slotHashes']);

const SYSVARS: Readonly<Record<Address, readonly [type: string, decoder: () => Decoder<unknown>]>> = {
  [sysvars.SYSVAR_CLOCK_ADDRESS]: ['clock', sysvars.getSysvarClockDecoder],
  [sysvars.SYSVAR_EPOCH_REWARDS_ADDRESS]: ['epochRewards', sysvars.getSysvarEpochRewardsDecoder],
  [sysvars.SYSVAR_EPOCH_SCHEDULE_ADDRESS]: ['epochSchedule', sysvars.getSysvarEpochScheduleDecoder],
  [sysvars.SYSVAR_LAST_RESTART_SLOT_ADDRESS]: ['lastRestartSlot', sysvars.getSysvarLastRestartSlotDecoder],
  [sysvars.SYSVAR_RECENT_BLOCKHASHES_ADDRESS]: [
    'recentBlockhashes',
    sysvars.getSysvarRecentBlockhashesDecoder,
  ],
  [FEES_SYSVAR]: ['fees', getFeesDecoder],
  [sysvars.SYSVAR_RENT_ADDRESS]: ['rent', getRentDecoder],
  [sysvars.SYSVAR_SLOT_HASHES_ADDRESS]: ['slotHashes', sysvars.getSysvarSlotHashesDecoder],
  [sysvars.SYSVAR_STAKE_HISTORY_ADDRESS]: ['stakeHistory', sysvars.getSysvarStakeHistoryDecoder],
};

function parseSysvar({ data }: AccountState, key: Address): Parsed | undefined {
  if (key === sysvars.SYSVAR_SLOT_HISTORY_ADDRESS)
    return { type: 'slotHistory', info: parseSlotHistory(data) };
  const [type, decoder] = SYSVARS[key] ?? [];
  if (type === undefined || decoder === undefined) return undefined;
  const isList = SYSVAR_LISTS.has(type);
  const bytes = isList ? Buffer.concat([data.subarray(0, 4), data.subarray(8)]) : data;
  return { type, info: encodeDecoded('', decoder().decode(bytes), encodeSysvarMember) };
}

function encodeSysvarMember(name: string, value: unknown): Json | undefined {
  return SYSVAR_TEXTS.has(name) ? String(value) : undefined;
}

/** A bit for each of the last 1,048,576 slots, lowest first: an option of the words, the count of bits, the next slot. */
function parseSlotHistory(data: Uint8Array): JsonObject {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const words = data.subarray(9, data.length - 16);
  function* bits(): Generator<string> {
    yield '"';
    for (let from = 0; from < words.length; from += 4096)
      yield Array.from(words.subarray(from, from + 4096), bitsOf).join('');
    yield '"';
  }
  return { bits: piecesJson(bits), nextSlot: view.getBigUint64(data.length - 8, true) };
}

function bitsOf(byte: number): string {
  return Array.from({ length: 8 }, (_, bit) => (byte >> bit) & 1).join('');
}
