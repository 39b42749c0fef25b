import {
  type Address,
  address,
  getAddressDecoder,
  getNullableDecoder,
  getStructDecoder,
  getU32Decoder,
  getU64Decoder,
  isAddress,
} from '@solana/kit';
import type { ProgramState } from './change.ts';

/** The head of an account's data, and its whole length if the backend tells it. */
export type AccountHead = Readonly<{ owner: Address; data: Uint8Array; space: number | undefined }>;

type Decoded =
  | Readonly<{ kind: 'decided'; state: ProgramState }>
  /** The bytes cannot be what the chain holds. */
  | Readonly<{ kind: 'malformed'; reason: string }>;

const LOADER_V3 = address('BPFLoaderUpgradeab1e11111111111111111111111');
const LOADER_V4 = address('LoaderV411111111111111111111111111111111111');
const SYSTEM_PROGRAM = address('11111111111111111111111111111111');

/** Bytes of a program account that tell its state: loader v4 needs 48, loader v3 36. */
export const PROGRAM_HEAD_BYTES = 48;
/** Bytes of a ProgramData account in front of the program's code. */
export const PROGRAM_DATA_HEAD_BYTES = 45;

// Layouts: UpgradeableLoaderState in solana-loader-v3-interface (bincode), LoaderV4State in solana-loader-v4-interface.
const tag = getU32Decoder();
const TAG_PROGRAM = 2;
const TAG_PROGRAM_DATA = 3;
const PROGRAM_BYTES = 36;
const program = getStructDecoder([
  ['tag', tag],
  ['programData', getAddressDecoder()],
]);
const programData = getStructDecoder([
  ['tag', tag],
  ['deploySlot', getU64Decoder()],
  ['upgradeAuthority', getNullableDecoder(getAddressDecoder())],
]);
const programV4 = getStructDecoder([
  ['deploySlot', getU64Decoder()],
  ['authorityOrNextVersion', getAddressDecoder()],
  ['status', getU64Decoder()],
]);
const V4_FINALIZED = 2n;

const MISSING = decided({ status: 'missing' });
const [PROGRAM, PROGRAM_DATA] = ['a program account', 'a ProgramData account'] as const;

/** An account that is read; there is none at an address that was never used. */
type FetchedAccount = AccountHead | null | undefined;

/**
 * Decodes a program's account. A loader-v3 program keeps its state in a second account. An account of the System program
 * is only a balance (someone sent lamports to a closed address), and an account of loader v3 that is no Program (a
 * buffer, a ProgramData, an emptied account) is no program either: both are `missing`.
 */
export function decodeProgram(
  account: FetchedAccount,
): Decoded | Readonly<{ kind: 'program-data-at'; address: Address }> {
  if (!account || account.owner === SYSTEM_PROGRAM) return MISSING;
  if (isCut(account, PROGRAM_HEAD_BYTES)) return malformed(PROGRAM, account);
  if (account.owner === LOADER_V4) return decodeV4(account);
  if (account.owner !== LOADER_V3) return decided({ status: 'other_loader' });
  const found = tagOf(account);
  if (found === undefined) return emptied(PROGRAM, account);
  if (found !== TAG_PROGRAM) return MISSING;
  if (account.data.length < PROGRAM_BYTES) return malformed(PROGRAM, account);
  return { kind: 'program-data-at', address: program.decode(account.data).programData };
}

/** Decodes the ProgramData account of a loader-v3 program (docs/spec.md 3: the deploy slot comes from here). */
export function decodeProgramData(account: FetchedAccount): Decoded {
  if (account?.owner !== LOADER_V3) return MISSING;
  if (isCut(account, PROGRAM_DATA_HEAD_BYTES)) return malformed(PROGRAM_DATA, account);
  const found = tagOf(account);
  if (found === undefined) return emptied(PROGRAM_DATA, account);
  if (found !== TAG_PROGRAM_DATA) return MISSING;
  // The loader always allocates the whole head, also when no authority is written into it.
  if (account.data.length < PROGRAM_DATA_HEAD_BYTES) return malformed(PROGRAM_DATA, account);
  const option = account.data[12];
  if (option !== 0 && option !== 1) return malformed(PROGRAM_DATA, account);
  const { deploySlot, upgradeAuthority } = programData.decode(account.data);
  return decided(
    upgradeAuthority === null
      ? { status: 'frozen', deploySlot }
      : { status: 'upgradeable', deploySlot, upgradeAuthority },
  );
}

/** A retracted v4 program cannot run but can be deployed again by its authority: `upgradeable`. */
function decodeV4(account: AccountHead): Decoded {
  if (account.data.length < PROGRAM_HEAD_BYTES) return emptied(PROGRAM, account);
  const { deploySlot, authorityOrNextVersion: upgradeAuthority, status } = programV4.decode(account.data);
  if (status > V4_FINALIZED) return malformed(PROGRAM, account);
  if (status === V4_FINALIZED) return decided({ status: 'frozen', deploySlot });
  return decided({ status: 'upgradeable', deploySlot, upgradeAuthority });
}

/** An account with less than a state: emptied if the backend tells its length, and perhaps truncated if not. */
function emptied(what: string, account: AccountHead): Decoded {
  return account.space === undefined ? malformed(what, account) : MISSING;
}

function decided(state: ProgramState): Decoded {
  return { kind: 'decided', state };
}

function tagOf({ data }: AccountHead): number | undefined {
  return data.length < 4 ? undefined : tag.decode(data);
}

/** The backend sent less than was requested of an account that has more. */
function isCut({ data, space }: AccountHead, wantedBytes: number): boolean {
  return space !== undefined && data.length < Math.min(space, wantedBytes);
}

function malformed(what: string, { owner, data }: AccountHead): Decoded {
  return {
    kind: 'malformed',
    reason: `${what} of ${owner} with ${data.length} bytes that cannot be decoded`,
  };
}

/** Reads a `getMultipleAccounts` result with base64 data; `undefined` when it is not one of `count` accounts. */
export function accountsFrom(result: unknown, count: number) {
  const { context, value } = membersOf(result);
  const { slot } = membersOf(context);
  if (!isCount(slot) || !Array.isArray(value) || value.length !== count) return undefined;
  const accounts = value.map((account) => (account === null ? null : accountFrom(account)));
  if (!accounts.every((account) => account !== undefined)) return undefined;
  return { contextSlot: BigInt(slot), accounts };
}

function accountFrom(value: unknown): AccountHead | undefined {
  const { owner, data, space } = membersOf(value);
  if (typeof owner !== 'string' || !isAddress(owner)) return undefined;
  if (!Array.isArray(data) || data[1] !== 'base64' || typeof data[0] !== 'string') return undefined;
  const bytes = bytesFrom(data[0]);
  return bytes && { owner: owner satisfies Address, data: bytes, space: isCount(space) ? space : undefined };
}

/** `Buffer` skips what is not base64, which would shift every byte behind it. */
function bytesFrom(base64: string): Uint8Array | undefined {
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 ? bytes : undefined;
}

/** The members of a JSON object; none of anything else. */
function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return Object(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
