import {
  type Address,
  address,
  getAddressDecoder,
  getAddressEncoder,
  type ReadonlyUint8Array,
} from '@solana/kit';

const MEMO_ENTRIES_MAX = 50_000;
const encoder = getAddressEncoder();
const decoder = getAddressDecoder();

export function addressOf(bytes: ReadonlyUint8Array): Address {
  return decoder.decode(bytes);
}

const encoded = new Map<Address, Uint8Array>();

/** The 32 bytes of an address. Remembered, because base58 is slow and the same addresses recur; do not write to them. */
export function addressBytes(address: Address): Uint8Array {
  const known = encoded.get(address);
  if (known !== undefined) return known;
  const bytes = new Uint8Array(encoder.encode(address));
  if (encoded.size >= MEMO_ENTRIES_MAX) encoded.clear();
  encoded.set(address, bytes);
  return bytes;
}

/** Programs and sysvars that the chain treats by name. */
export const SYSTEM_PROGRAM = address('11111111111111111111111111111111');
export const NATIVE_LOADER = address('NativeLoader1111111111111111111111111111111');
export const LOADER_V1 = address('BPFLoader1111111111111111111111111111111111');
export const LOADER_V2 = address('BPFLoader2111111111111111111111111111111111');
export const LOADER_V3 = address('BPFLoaderUpgradeab1e11111111111111111111111');
export const LOADER_V4 = address('LoaderV411111111111111111111111111111111111');
export const TOKEN_PROGRAM = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
export const TOKEN_2022_PROGRAM = address('TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb');
export const ADDRESS_LOOKUP_TABLE_PROGRAM = address('AddressLookupTab1e1111111111111111111111111');
export const COMPUTE_BUDGET_PROGRAM = address('ComputeBudget111111111111111111111111111111');
export const CONFIG_PROGRAM = address('Config1111111111111111111111111111111111111');
export const STAKE_PROGRAM = address('Stake11111111111111111111111111111111111111');
export const VOTE_PROGRAM = address('Vote111111111111111111111111111111111111111');
const FEATURE_PROGRAM = address('Feature111111111111111111111111111111111111');
export const MEMO_V1_PROGRAM = address('Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo');
export const MEMO_PROGRAM = address('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr');
export const ED25519_PROGRAM = address('Ed25519SigVerify111111111111111111111111111');
export const SECP256K1_PROGRAM = address('KeccakSecp256k11111111111111111111111111111');
export const SECP256R1_PROGRAM = address('Secp256r1SigVerify1111111111111111111111111');
export const SYSVAR_OWNER = address('Sysvar1111111111111111111111111111111111111');
export const CLOCK_SYSVAR = address('SysvarC1ock11111111111111111111111111111111');
export const SLOT_HASHES_SYSVAR = address('SysvarS1otHashes111111111111111111111111111');

/** Owners of everything that a new LiteSVM holds; what it holds cannot be listed otherwise. */
export const INITIAL_OWNERS = [
  NATIVE_LOADER,
  SYSVAR_OWNER,
  LOADER_V1,
  LOADER_V2,
  LOADER_V3,
  FEATURE_PROGRAM,
  CONFIG_PROGRAM,
  TOKEN_PROGRAM,
  TOKEN_2022_PROGRAM,
  STAKE_PROGRAM,
];
