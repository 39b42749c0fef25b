/*
 * Instructions as jsonParsed gives them. The programs' own clients decode the bytes; a row says what Agave calls the
 * instruction, its accounts and its fields (Agave `transaction-status/src/parse_*.rs`). What has no row here is
 * partially decoded, as Agave leaves the instructions of programs that it does not know, compute-budget's among them;
 * stake, vote and confidential-transfer instructions, which it parses, have none.
 */
import {
  AddressLookupTableInstruction,
  parseAddressLookupTableInstruction,
} from '@solana-program/address-lookup-table';
import { LoaderV3Instruction, parseLoaderV3Instruction } from '@solana-program/loader-v3';
import { parseSystemInstruction, SystemInstruction } from '@solana-program/system';
import {
  ASSOCIATED_TOKEN_PROGRAM_ADDRESS,
  AssociatedTokenInstruction,
  AuthorityType,
  parseAssociatedTokenInstruction,
  parseToken2022Instruction,
  Token2022Instruction,
} from '@solana-program/token-2022';
import {
  type AccountMeta,
  AccountRole,
  type Address,
  getBase58Decoder,
  type Instruction,
  type InstructionWithAccounts,
  type InstructionWithData,
  type ReadonlyUint8Array,
} from '@solana/kit';
import type { Json, JsonObject } from '../json/value.ts';
import {
  ADDRESS_LOOKUP_TABLE_PROGRAM,
  LOADER_V3,
  MEMO_PROGRAM,
  MEMO_V1_PROGRAM,
  SYSTEM_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from '../protocol/address.ts';
import { encodeDecoded } from './data.ts';
import { encodeTokenAmount, extensionTypeName, lowerFirst, stateName } from './token.ts';

/** An instruction with addresses instead of indexes. */
export type KeyedInstruction = Readonly<{
  programId: Address;
  accounts: readonly Address[];
  data: Uint8Array;
  stackHeight: Json;
}>;

type Fields = Readonly<Record<string, unknown>>;
type ClientInstruction = Instruction &
  InstructionWithAccounts<readonly AccountMeta[]> &
  InstructionWithData<ReadonlyUint8Array>;
type Rows = Readonly<Record<string, string>>;
type Client = readonly [
  program: string,
  names: Readonly<Record<number, string>>,
  rows: Rows,
  parse: (instruction: ClientInstruction) => Readonly<{ instructionType: number; data: Fields }>,
];

/*
 * A row: `type: accounts | fields`, in the order of the client's own; the type is the client's name when there is
 * none. `-` is left out. Of an account, `?` leaves it out and `!` makes it null when it is absent, `*` is an authority that
 * may be a multisig with signers behind it, and `...` takes the accounts that are left. Of a field, `?` leaves it
 * out where it is null.
 */
const SYSTEM_ROWS: Rows = {
  CreateAccount: 'source newAccount | lamports space owner',
  Assign: 'account | owner',
  TransferSol: 'transfer: source destination | lamports',
  CreateAccountWithSeed: 'source newAccount | base seed lamports space owner',
  AdvanceNonceAccount: 'advanceNonce: nonceAccount recentBlockhashesSysvar nonceAuthority |',
  WithdrawNonceAccount:
    'withdrawFromNonce: nonceAccount destination recentBlockhashesSysvar rentSysvar nonceAuthority | lamports',
  InitializeNonceAccount: 'initializeNonce: nonceAccount recentBlockhashesSysvar rentSysvar | nonceAuthority',
  AuthorizeNonceAccount: 'authorizeNonce: nonceAccount nonceAuthority | newAuthorized',
  Allocate: 'account | space',
  AllocateWithSeed: 'account - | base seed space owner',
  AssignWithSeed: 'account - | base seed owner',
  TransferSolWithSeed: 'transferWithSeed: source sourceBase destination | lamports sourceSeed sourceOwner',
  UpgradeNonceAccount: 'upgradeNonce: nonceAccount |',
};

const ASSOCIATED_TOKEN_ROWS: Rows = {
  CreateAssociatedToken: 'create: source account wallet mint systemProgram tokenProgram |',
  CreateAssociatedTokenIdempotent:
    'createIdempotent: source account wallet mint systemProgram tokenProgram |',
  RecoverNestedAssociatedToken:
    'recoverNested: nestedSource nestedMint destination nestedOwner ownerMint wallet tokenProgram |',
};

const LOADER_ROWS: Rows = {
  InitializeBuffer: 'account authority? |',
  Write: 'account authority | offset bytes',
  DeployWithMaxDataLen:
    'payerAccount programDataAccount programAccount bufferAccount rentSysvar clockSysvar systemProgram authority | maxDataLen',
  Upgrade: 'programDataAccount programAccount bufferAccount spillAccount rentSysvar clockSysvar authority |',
  SetAuthority: 'account authority newAuthority! |',
  SetAuthorityChecked: 'account authority newAuthority |',
  Close: 'account recipient authority programAccount! |',
  ExtendProgram: 'programDataAccount programAccount systemProgram! payerAccount! | additionalBytes',
};

const LOOKUP_TABLE_ROWS: Rows = {
  CreateLookupTable:
    'lookupTableAccount lookupTableAuthority payerAccount systemProgram | recentSlot bumpSeed',
  FreezeLookupTable: 'lookupTableAccount lookupTableAuthority |',
  ExtendLookupTable: 'lookupTableAccount lookupTableAuthority payerAccount? systemProgram? | newAddresses',
  DeactivateLookupTable: 'lookupTableAccount lookupTableAuthority |',
  CloseLookupTable: 'lookupTableAccount lookupTableAuthority recipient |',
};

// Both token programs, as Agave parses them by one interface. Confidential transfers have no rows.
const TOKEN_ROWS: Rows = {
  InitializeMint: 'mint rentSysvar | decimals mintAuthority freezeAuthority?',
  InitializeMint2: 'mint | decimals mintAuthority freezeAuthority?',
  InitializeAccount: 'account mint owner rentSysvar |',
  InitializeAccount2: 'account mint rentSysvar | owner',
  InitializeAccount3: 'account mint | owner',
  InitializeMultisig: 'multisig rentSysvar signers... | m',
  InitializeMultisig2: 'multisig signers... | m',
  Transfer: 'source destination authority* | amount',
  Approve: 'source delegate owner* | amount',
  Revoke: 'source owner* |',
  SetAuthority: 'owned authority* | authorityType newAuthority',
  MintTo: 'mint account mintAuthority* | amount',
  Burn: 'account mint authority* | amount',
  CloseAccount: 'account destination owner* |',
  FreezeAccount: 'account mint freezeAuthority* |',
  ThawAccount: 'account mint freezeAuthority* |',
  TransferChecked: 'source mint destination authority* | tokenAmount -',
  ApproveChecked: 'source mint delegate owner* | tokenAmount -',
  MintToChecked: 'mint account mintAuthority* | tokenAmount -',
  BurnChecked: 'account mint authority* | tokenAmount -',
  SyncNative: 'account |',
  GetAccountDataSize: 'mint | extensionTypes?',
  InitializeImmutableOwner: 'account |',
  AmountToUiAmount: 'mint | amount',
  UiAmountToAmount: 'mint | uiAmount',
  InitializeMintCloseAuthority: 'mint | newAuthority',
  InitializeTransferFeeConfig:
    'mint | transferFeeConfigAuthority? withdrawWithheldAuthority? transferFeeBasisPoints maximumFee',
  TransferCheckedWithFee: 'source mint destination authority* | tokenAmount - feeAmount',
  WithdrawWithheldTokensFromMint: 'mint feeRecipient withdrawWithheldAuthority* |',
  WithdrawWithheldTokensFromAccounts: 'mint feeRecipient withdrawWithheldAuthority* sourceAccounts... | -',
  HarvestWithheldTokensToMint: 'mint sourceAccounts... |',
  SetTransferFee: 'mint transferFeeConfigAuthority* | transferFeeBasisPoints maximumFee',
  InitializeDefaultAccountState: 'mint | accountState',
  UpdateDefaultAccountState: 'mint freezeAuthority* | accountState',
  Reallocate: 'account payer systemProgram owner* | extensionTypes',
  EnableMemoTransfers: 'enableRequiredMemoTransfers: account owner* |',
  DisableMemoTransfers: 'disableRequiredMemoTransfers: account owner* |',
  CreateNativeMint: 'payer nativeMint systemProgram |',
  InitializeNonTransferableMint: 'mint |',
  InitializeInterestBearingMint: 'initializeInterestBearingConfig: mint | rateAuthority rate',
  UpdateRateInterestBearingMint: 'updateInterestBearingConfigRate: mint rateAuthority* | newRate',
  EnableCpiGuard: 'account owner* |',
  DisableCpiGuard: 'account owner* |',
  InitializePermanentDelegate: 'mint | delegate',
  InitializeTransferHook: 'mint | authority? programId?',
  UpdateTransferHook: 'mint authority* | programId?',
  WithdrawExcessLamports: 'source destination authority* |',
  InitializeMetadataPointer: 'mint | authority? metadataAddress?',
  UpdateMetadataPointer: 'mint authority* | metadataAddress?',
  InitializeGroupPointer: 'mint | authority? groupAddress?',
  UpdateGroupPointer: 'mint authority* | groupAddress?',
  InitializeGroupMemberPointer: 'mint | authority? memberAddress?',
  UpdateGroupMemberPointer: 'mint authority* | memberAddress?',
  InitializeScaledUiAmountMint: 'initializeScaledUiAmountConfig: mint | authority multiplier',
  UpdateMultiplierScaledUiMint: 'updateMultiplier: mint authority* | newMultiplier newMultiplierTimestamp',
  InitializePausableConfig: 'mint | authority',
  Pause: 'mint authority* |',
  Resume: 'mint authority* |',
  InitializePermissionedBurn: 'initializePermissionedBurnConfig: mint | authority',
  PermissionedBurn: 'account mint permissionedBurnAuthority authority* | amount',
  PermissionedBurnChecked: 'account mint permissionedBurnAuthority authority* | tokenAmount -',
  InitializeTokenMetadata: 'metadata updateAuthority mint mintAuthority | name symbol uri',
  UpdateTokenMetadataField: 'metadata updateAuthority | field value',
  RemoveTokenMetadataKey: 'metadata updateAuthority | idempotent key',
  UpdateTokenMetadataUpdateAuthority: 'updateTokenMetadataAuthority: metadata updateAuthority | newAuthority',
  EmitTokenMetadata: 'metadata | start? end?',
  InitializeTokenGroup: 'group mint mintAuthority | updateAuthority maxSize',
  UpdateTokenGroupMaxSize: 'group updateAuthority | maxSize',
  UpdateTokenGroupUpdateAuthority: 'updateTokenGroupAuthority: group updateAuthority | newAuthority',
  InitializeTokenGroupMember: 'member memberMint memberMintAuthority group groupUpdateAuthority |',
};

const CLIENTS: Readonly<Record<Address, Client>> = {
  [SYSTEM_PROGRAM]: ['system', SystemInstruction, SYSTEM_ROWS, parseSystemInstruction],
  [TOKEN_PROGRAM]: ['spl-token', Token2022Instruction, TOKEN_ROWS, parseToken2022Instruction],
  [TOKEN_2022_PROGRAM]: ['spl-token', Token2022Instruction, TOKEN_ROWS, parseToken2022Instruction],
  [ASSOCIATED_TOKEN_PROGRAM_ADDRESS]: [
    'spl-associated-token-account',
    AssociatedTokenInstruction,
    ASSOCIATED_TOKEN_ROWS,
    parseAssociatedTokenInstruction,
  ],
  [LOADER_V3]: ['bpf-upgradeable-loader', LoaderV3Instruction, LOADER_ROWS, parseLoaderV3Instruction],
  [ADDRESS_LOOKUP_TABLE_PROGRAM]: [
    'address-lookup-table',
    AddressLookupTableInstruction,
    LOOKUP_TABLE_ROWS,
    parseAddressLookupTableInstruction,
  ],
};

/** More accounts than any client asks for; they check before the row does, and count absent optional ones. */
const PADDED_ACCOUNTS = 16;
const base58 = getBase58Decoder();
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** An instruction, parsed where Agave parses it, else partially decoded. */
export function encodeInstruction(instruction: KeyedInstruction): Json {
  const { programId, accounts, data, stackHeight } = instruction;
  try {
    if (programId === MEMO_PROGRAM || programId === MEMO_V1_PROGRAM)
      return { program: 'spl-memo', programId, parsed: utf8.decode(data), stackHeight };
    const client = CLIENTS[programId];
    const parsed = client === undefined ? undefined : parse(client, instruction);
    if (parsed !== undefined) return { program: client?.[0] ?? null, programId, parsed, stackHeight };
  } catch {
    // A memo that is no text, or bytes that the program's client cannot decode.
  }
  return { programId, accounts, data: base58.decode(data), stackHeight };
}

function parse([, names, rows, decode]: Client, instruction: KeyedInstruction): Json | undefined {
  const { programId, accounts } = instruction;
  // The associated token program's first instruction came without data once, and still may.
  const isBare = programId === ASSOCIATED_TOKEN_PROGRAM_ADDRESS && instruction.data.length === 0;
  const data = isBare ? Uint8Array.of(0) : instruction.data;
  const absent = Array.from({ length: PADDED_ACCOUNTS }, () => programId);
  const metas = [...accounts, ...absent].map((address) => ({ address, role: AccountRole.READONLY }));
  const decoded = decode({ programAddress: programId, accounts: metas, data });
  const name = names[decoded.instructionType] ?? '';
  const row = rows[name];
  if (row === undefined) return undefined;
  const [, type = lowerFirst(name), accountWords = '', fieldWords = ''] =
    /^(?:(\w+): )?([^|]*)\|(.*)$/.exec(row) ?? [];
  const info = accountsInfo(accountWords.trim().split(' '), accounts, decoded.data);
  if (info === undefined) return undefined;
  return { type, info: { ...info, ...fieldsInfo(fieldWords.trim(), name, decoded.data, data) } };
}

/** The accounts by the words of a row; undefined when one is missing. */
function accountsInfo(words: readonly string[], accounts: readonly Address[], data: Fields) {
  const info: Record<string, Json> = {};
  // Where they are counted, the accounts that are left stand behind the signers of a multisig.
  const counted = data['numTokenAccounts'];
  const end = typeof counted === 'number' ? accounts.length - counted : accounts.length;
  if (typeof counted === 'number' && end < words.length - 1) return undefined;
  for (const [index, word] of words.entries()) {
    const name = word.replace(/\W+$/, '');
    const account = accounts[index];
    if (word.endsWith('...')) info[name] = accounts.slice(typeof counted === 'number' ? end : index);
    else if (account === undefined && /[\w*-]$/.test(word)) return undefined;
    else if (word.endsWith('*') && end > index + 1) {
      info[multisigName(name)] = account ?? null;
      info['signers'] = accounts.slice(index + 1, end);
    } else if (word === 'owned') info[ownedName(data['authorityType'])] = account ?? null;
    else if (word !== '-' && (account !== undefined || word.endsWith('!'))) info[name] = account ?? null;
  }
  return info;
}

function multisigName(name: string): string {
  // Agave's own spelling.
  if (name === 'transferFeeConfigAuthority') return `multisig${name}`;
  return `multisig${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

function ownedName(type: unknown): string {
  return type === AuthorityType.AccountOwner || type === AuthorityType.CloseAccount ? 'account' : 'mint';
}

function fieldsInfo(words: string, name: string, data: Fields, bytes: Uint8Array): JsonObject {
  const fields = Object.entries(data).filter(([field]) => !/discriminator$/i.test(field));
  // Its client leaves the types out, which are all that follows.
  if (name === 'GetAccountDataSize') fields.push(['extensionTypes', extensionTypesOf(bytes)]);
  const info: Record<string, Json> = {};
  for (const [index, word] of words.split(' ').entries()) {
    const field = fields[index];
    if (word === '' || word === '-' || field === undefined) continue;
    const member = word.replace('?', '');
    const value = encodeDecoded(member, field[1], (_, each) => encodeField(member, each, data));
    if (value !== null || member === word) info[member] = value;
  }
  return info;
}

function extensionTypesOf(bytes: Uint8Array): readonly number[] | null {
  const types = Array.from({ length: (bytes.length - 1) >> 1 }, (_, index) => bytes[1 + index * 2] ?? 0);
  return types.length === 0 ? null : types;
}

function encodeField(name: string, value: unknown, data: Fields): Json | undefined {
  if (name === 'tokenAmount' || name === 'feeAmount')
    return encodeTokenAmount(BigInt(value as bigint), Number(data['decimals'])); // by the rows that name them
  if (name === 'amount' || name === 'multiplier' || name === 'newMultiplier') return String(value);
  if (name === 'authorityType') return lowerFirst(AuthorityType[Number(value)] ?? '');
  if (name === 'accountState') return stateName(Number(value));
  if (name === 'extensionTypes' && Array.isArray(value))
    return value.map((type) => extensionTypeName(Number(type)));
  return name === 'field' && typeof value === 'object' && value !== null ? fieldName(value) : undefined;
}

function fieldName(field: object): string {
  if ('fields' in field && Array.isArray(field.fields)) return String(field.fields[0]);
  return '__kind' in field ? String(field.__kind).toLowerCase() : '';
}
