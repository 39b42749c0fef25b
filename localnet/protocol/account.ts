import { AccountState as TokenState, getMintDecoder, getTokenDecoder } from '@solana-program/token';
import { type Address, unwrapOptionRecursively } from '@solana/kit';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './address.ts';

/** An account as the chain holds it. `lamports` and `rentEpoch` are u64; `data` is never changed in place. */
export type AccountState = Readonly<{
  lamports: bigint;
  data: Uint8Array;
  owner: Address;
  executable: boolean;
  rentEpoch: bigint;
}>;

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
 * The states that the token programs keep in accounts: SPL Token, and Token-2022 whose extensions follow a byte of account type.
 */

const TOKEN_ACCOUNT_BYTES = 165;
const MINT_BYTES = 82;
export const MULTISIG_BYTES = 355;
const TOKEN_STATE_AT = 108;
const MINT_IS_INITIALIZED_AT = 45;
const ACCOUNT_TYPE_AT = 165;
const ACCOUNT_TYPE_MINT = 1;
const ACCOUNT_TYPE_ACCOUNT = 2;
const tokenDecoder = getTokenDecoder();
const mintDecoder = getMintDecoder();

export function isTokenProgram(address: Address): boolean {
  return address === TOKEN_PROGRAM || address === TOKEN_2022_PROGRAM;
}

/** Whether a token account or mint carries Token-2022 extensions. */
export function hasExtensions({ owner, data }: AccountState): boolean {
  return owner === TOKEN_2022_PROGRAM && data.length > ACCOUNT_TYPE_AT && data.length !== MULTISIG_BYTES;
}

/** Whether data has the layout of an initialized token account, of any owner. */
export function isTokenAccount(data: Uint8Array): boolean {
  if (data.length < TOKEN_ACCOUNT_BYTES || data[TOKEN_STATE_AT] === TokenState.Uninitialized) return false;
  const isExtended = data.length !== MULTISIG_BYTES && data[ACCOUNT_TYPE_AT] === ACCOUNT_TYPE_ACCOUNT;
  return data.length === TOKEN_ACCOUNT_BYTES || isExtended;
}

/** The token account in an account of a token program, when it is an initialized one. */
export function tokenAccountOf({ owner, data }: AccountState) {
  if (!isTokenProgram(owner) || !isTokenAccount(data)) return undefined;
  if ((data[TOKEN_STATE_AT] ?? 0) > TokenState.Frozen) return undefined;
  return unwrapOptionRecursively(tokenDecoder.decode(data));
}

/** The mint in an account of a token program, when it is an initialized one. */
export function mintOf(state: AccountState) {
  const { owner, data } = state;
  const isMint =
    data.length === MINT_BYTES || (hasExtensions(state) && data[ACCOUNT_TYPE_AT] === ACCOUNT_TYPE_MINT);
  if (!isTokenProgram(owner) || !isMint || data[MINT_IS_INITIALIZED_AT] !== 1) return undefined;
  return unwrapOptionRecursively(mintDecoder.decode(data));
}
