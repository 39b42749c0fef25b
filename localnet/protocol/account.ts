import type { Address } from '@solana/kit';
import { addressOf, TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './address.ts';

/** An account as the chain holds it. `lamports` and `rentEpoch` are u64; `data` is never changed in place. */
export type AccountState = Readonly<{
  lamports: bigint;
  data: Uint8Array;
  owner: Address;
  executable: boolean;
  rentEpoch: bigint;
}>;

/** Finds an account at one moment. */
export type ReadAccount = (address: Address) => AccountState | undefined;

/** The rent epoch of every rent-exempt account: u64::MAX. */
export const RENT_EXEMPT_EPOCH = 18446744073709551615n;

/** Whether nothing that an observer could read differs. `undefined` is an account that does not exist. */
export function isSameAccount(one: AccountState | undefined, other: AccountState | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.lamports === other.lamports &&
    one.owner === other.owner &&
    one.executable === other.executable &&
    one.rentEpoch === other.rentEpoch &&
    Buffer.compare(one.data, other.data) === 0
  );
}

/*
 * What the token programs keep in accounts: SPL Token, and Token-2022 whose extensions follow a byte of account type.
 */

const TOKEN_ACCOUNT_BYTES = 165;
const MINT_BYTES = 82;
const MULTISIG_BYTES = 355;
const ACCOUNT_TYPE_AT = 165;
const ACCOUNT_TYPE_MINT = 1;
const ACCOUNT_TYPE_ACCOUNT = 2;
const UI_AMOUNT_EXTENSIONS: ReadonlySet<number> = new Set([10, 25]);
const STATES = ['uninitialized', 'initialized', 'frozen'] as const;

/** A token account's own fields; amounts are u64. */
type TokenAccount = Readonly<{
  mint: Address;
  owner: Address;
  amount: bigint;
  delegate: Address | undefined;
  state: 'initialized' | 'frozen';
  nativeReserve: bigint | undefined;
  delegatedAmount: bigint;
  closeAuthority: Address | undefined;
}>;

/** A mint's own fields. */
type Mint = Readonly<{
  mintAuthority: Address | undefined;
  supply: bigint;
  decimals: number;
  freezeAuthority: Address | undefined;
}>;

/** Whether an address is one of the two token programs. */
export function isTokenProgram(address: Address): boolean {
  return address === TOKEN_PROGRAM || address === TOKEN_2022_PROGRAM;
}

/** Whether a token account or mint carries Token-2022 extensions. */
export function hasExtensions(state: AccountState): boolean {
  return (
    state.owner === TOKEN_2022_PROGRAM &&
    state.data.length > ACCOUNT_TYPE_AT &&
    state.data.length !== MULTISIG_BYTES
  );
}

/** The token account in an account of a token program, when it is an initialized one. */
export function tokenAccountOf(state: AccountState): TokenAccount | undefined {
  if (!isTokenProgram(state.owner) || !isAccountLayout(state)) return undefined;
  const view = viewOf(state.data);
  const named = STATES[state.data[108] ?? 0];
  if (named === undefined || named === 'uninitialized') return undefined;
  return {
    mint: addressAt(state.data, 0),
    owner: addressAt(state.data, 32),
    amount: view.getBigUint64(64, true),
    delegate: optionAt(view, 72) ? addressAt(state.data, 76) : undefined,
    state: named,
    nativeReserve: optionAt(view, 109) ? view.getBigUint64(113, true) : undefined,
    delegatedAmount: view.getBigUint64(121, true),
    closeAuthority: optionAt(view, 129) ? addressAt(state.data, 133) : undefined,
  };
}

/** The mint in an account of a token program, when it is an initialized one. */
export function mintOf(state: AccountState): Mint | undefined {
  if (!isTokenProgram(state.owner) || !isMintLayout(state) || state.data[45] !== 1) return undefined;
  const view = viewOf(state.data);
  return {
    mintAuthority: optionAt(view, 0) ? addressAt(state.data, 4) : undefined,
    supply: view.getBigUint64(36, true),
    decimals: state.data[44] ?? 0,
    freezeAuthority: optionAt(view, 46) ? addressAt(state.data, 50) : undefined,
  };
}

/** Whether a mint shows amounts other than it keeps them: interest-bearing or scaled. */
export function hasUiAmountExtension(state: AccountState): boolean {
  if (!hasExtensions(state)) return false;
  const view = viewOf(state.data);
  for (let at = ACCOUNT_TYPE_AT + 1; at + 4 <= state.data.length; at += 4 + view.getUint16(at + 2, true)) {
    if (UI_AMOUNT_EXTENSIONS.has(view.getUint16(at, true))) return true;
  }
  return false;
}

function isAccountLayout(state: AccountState): boolean {
  if (state.data.length === TOKEN_ACCOUNT_BYTES) return true;
  return hasExtensions(state) && state.data[ACCOUNT_TYPE_AT] === ACCOUNT_TYPE_ACCOUNT;
}

function isMintLayout(state: AccountState): boolean {
  if (state.data.length === MINT_BYTES) return true;
  return hasExtensions(state) && state.data[ACCOUNT_TYPE_AT] === ACCOUNT_TYPE_MINT;
}

function viewOf(data: Uint8Array): DataView {
  return new DataView(data.buffer, data.byteOffset, data.byteLength);
}

function optionAt(view: DataView, at: number): boolean {
  return view.getUint32(at, true) === 1;
}

function addressAt(data: Uint8Array, at: number): Address {
  return addressOf(data.subarray(at, at + 32));
}
