/*
 * Token amounts, and the extensions of Token-2022, in Agave's forms (`account-decoder/src/parse_token*.rs`). Two
 * extensions of a mint make its amounts look other than they are kept: interest, and a scale.
 */
import {
  AccountState as TokenState,
  type Extension,
  ExtensionType,
  getExtensionDecoder,
} from '@solana-program/token-2022';
import type { Address } from '@solana/kit';
import { float, type Json, type JsonObject } from '../json/value.ts';
import { type AccountState, hasExtensions, mintOf, type ReadAccount } from '../protocol/account.ts';
import { addressBytes, CLOCK_SYSVAR, SYSTEM_PROGRAM } from '../protocol/address.ts';
import { encodeDecoded } from './data.ts';

/** Behind the account, which mints are padded to, and the byte that tells accounts from mints. */
const EXTENSIONS_AT = 166;
const SECONDS_PER_YEAR = 60 * 60 * 24 * 365.24;
const BASIS_POINTS = 10_000;
const FIXED_DECIMALS_MAX = 100;
const UNIX_TIMESTAMP_AT = 32;
const extensionDecoder = getExtensionDecoder();

/** A token amount: exact text, decimals, and a float for people. */
export function encodeTokenAmount(amount: bigint, decimals: number): JsonObject {
  return {
    amount: amount.toString(),
    decimals,
    // The divisor is a u64 in Agave; beyond it there is no float.
    uiAmount: decimals > 19 ? null : float(Number(amount) / 10 ** decimals),
    uiAmountString: decimalText(amount, decimals),
  };
}

/** An amount of a mint, as the mint shows it at the moment of `account`. */
export function encodeMintAmount(amount: bigint, mint: AccountState, account: ReadAccount): JsonObject {
  const decimals = mintOf(mint)?.decimals ?? 0;
  const shown = hasExtensions(mint) ? shownAmount(amount, mint, decimals, nowOf(account)) : undefined;
  if (shown === undefined) return encodeTokenAmount(amount, decimals);
  const text = trimmed(shown.toFixed(Math.min(decimals, FIXED_DECIMALS_MAX)));
  const uiAmount = Number.isFinite(shown) ? float(Number(text)) : null;
  return { amount: amount.toString(), decimals, uiAmount, uiAmountString: text };
}

function shownAmount(amount: bigint, mint: AccountState, decimals: number, now: number): number | undefined {
  for (const extension of decodedExtensions(mint)) {
    if (extension.__kind === 'InterestBearingConfig') {
      const updated = Number(extension.lastUpdateTimestamp);
      const before = extension.preUpdateAverageRate * (updated - Number(extension.initializationTimestamp));
      const since = extension.currentRate * (now - updated);
      const grown = (rateSeconds: number) => Math.exp(rateSeconds / SECONDS_PER_YEAR / BASIS_POINTS);
      return (Number(amount) * grown(before) * grown(since)) / 10 ** decimals;
    }
    if (extension.__kind === 'ScaledUiAmountConfig') {
      const isNew = now >= Number(extension.newMultiplierEffectiveTimestamp);
      const multiplier = isNew ? extension.newMultiplier : extension.multiplier;
      return Math.trunc(Number(amount) * multiplier) / 10 ** decimals;
    }
  }
  return undefined;
}

function nowOf(account: ReadAccount): number {
  const clock = account(CLOCK_SYSVAR)?.data;
  if (clock === undefined) return 0;
  return Number(new DataView(clock.buffer, clock.byteOffset).getBigInt64(UNIX_TIMESTAMP_AT, true));
}

/** An amount with its decimal point, without trailing zeros. */
function decimalText(amount: bigint, decimals: number): string {
  if (decimals === 0) return amount.toString();
  const digits = amount.toString().padStart(decimals + 1, '0');
  return trimmed(`${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`);
}

function trimmed(text: string): string {
  return text.includes('.') ? text.replace(/0+$/, '').replace(/\.$/, '') : text;
}

/** The extensions of a token account or mint; undefined when it has none, because the member is then absent. */
export function encodeExtensions(state: AccountState): Json | undefined {
  if (!hasExtensions(state)) return undefined;
  const extensions = decodedExtensions(state).map(encodeExtension);
  return extensions.length === 0 ? undefined : extensions;
}

/** The extensions, entry by entry: type, length and value, up to the first that is none. */
function decodedExtensions({ data }: AccountState): readonly Extension[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const extensions: Extension[] = [];
  for (let at = EXTENSIONS_AT; at + 4 <= data.length && view.getUint16(at, true) !== 0;) {
    const end = at + 4 + view.getUint16(at + 2, true);
    extensions.push(decodeExtension(data.subarray(at, end)));
    at = end;
  }
  return extensions;
}

function decodeExtension(entry: Uint8Array): Extension {
  try {
    return extensionDecoder.decode(entry);
  } catch {
    return { __kind: 'Uninitialized' };
  }
}

/** Where Agave's names differ from the client's: of extensions, and of their members. */
const EXTENSION_NAMES: Readonly<Record<string, string>> = {
  // What the client cannot decode comes to this.
  Uninitialized: 'unparseableExtension',
  ConfidentialTransferFee: 'confidentialTransferFeeConfig',
  PermissionedBurn: 'permissionedBurnConfig',
};
const MEMBER_NAMES: Readonly<Record<string, string>> = {
  pendingBalanceLow: 'pendingBalanceLo',
  pendingBalanceHigh: 'pendingBalanceHi',
  'DefaultAccountState.state': 'accountState',
  'ConfidentialTransferFee.elgamalPubkey': 'withdrawWithheldAuthorityElgamalPubkey',
};

function encodeExtension({ __kind: kind, ...members }: Extension): Json {
  const extension = EXTENSION_NAMES[kind] ?? lowerFirst(kind);
  const entries = Object.entries(members).map(([name, value]) => {
    const member = MEMBER_NAMES[`${kind}.${name}`] ?? MEMBER_NAMES[name] ?? name;
    return [member, encodeDecoded(name, value, encodeMember)] as const;
  });
  return entries.length === 0 ? { extension } : { extension, state: Object.fromEntries(entries) };
}

function encodeMember(name: string, value: unknown): Json | undefined {
  // An authority of zeros is none.
  if (value === SYSTEM_PROGRAM) return null;
  if (name === 'state') return stateName(Number(value));
  if (/multiplier$/i.test(name)) return String(value);
  if (!/elgamalPubkey$/i.test(name)) return undefined;
  return Buffer.from(addressBytes(value as Address)).toString('base64'); // 32 bytes
}

export function stateName(state: number): string {
  return lowerFirst(TokenState[state] ?? '');
}

/** An extension by its number, as instructions name it. */
export function extensionTypeName(type: number): string {
  const name = ExtensionType[type] ?? '';
  if (name === 'ScaledUiAmountConfig' || name === 'PausableConfig')
    return lowerFirst(name.replace('Config', ''));
  return name === 'ConfidentialTransferFee' ? 'confidentialTransferFeeConfig' : lowerFirst(name);
}

/** A name of a Rust enumeration as serde writes it in camelCase. */
export function lowerFirst(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1);
}
