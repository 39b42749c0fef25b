import { AccountState as TokenState, getMintDecoder, getTokenDecoder } from '@solana-program/token';
import { type Address, type Option, unwrapOption } from '@solana/kit';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './address.ts';

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
const tokenDecoder = getTokenDecoder();
const mintDecoder = getMintDecoder();

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
  const kind = state.data[108] ?? 0;
  if (kind !== TokenState.Initialized && kind !== TokenState.Frozen) return undefined;
  const { delegate, isNative, closeAuthority, ...token } = tokenDecoder.decode(state.data);
  return {
    ...token,
    delegate: valueOf(delegate),
    state: kind === TokenState.Frozen ? 'frozen' : 'initialized',
    nativeReserve: valueOf(isNative),
    closeAuthority: valueOf(closeAuthority),
  };
}

/** The mint in an account of a token program, when it is an initialized one. */
export function mintOf(state: AccountState): Mint | undefined {
  if (!isTokenProgram(state.owner) || !isMintLayout(state) || state.data[45] !== 1) return undefined;
  const { mintAuthority, supply, decimals, freezeAuthority } = mintDecoder.decode(state.data);
  return {
    mintAuthority: valueOf(mintAuthority),
    supply,
    decimals,
    freezeAuthority: valueOf(freezeAuthority),
  };
}

function isAccountLayout(state: AccountState): boolean {
  if (state.data.length === TOKEN_ACCOUNT_BYTES) return true;
  return hasExtensions(state) && state.data[ACCOUNT_TYPE_AT] === ACCOUNT_TYPE_ACCOUNT;
}

function isMintLayout(state: AccountState): boolean {
  if (state.data.length === MINT_BYTES) return true;
  return hasExtensions(state) && state.data[ACCOUNT_TYPE_AT] === ACCOUNT_TYPE_MINT;
}

function valueOf<T>(option: Option<T>): T | undefined {
  return unwrapOption(option) ?? undefined;
}
