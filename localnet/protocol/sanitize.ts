/*
 * The checks that Agave makes of a transaction before its signatures (`RuntimeTransaction::try_create`): its indexes and counts, its
 * compute-budget instructions, and its lookup tables. What fails here is no transaction, with or without a preflight.
 */
import type { Address } from '@solana/kit';
import type { ReadAccount } from './account.ts';
import { ADDRESS_LOOKUP_TABLE_PROGRAM, COMPUTE_BUDGET_PROGRAM } from './address.ts';
import type { TransactionErrorJson } from './error.ts';
import { LOOKUP_TABLE_HEADER_BYTES, programOf, type Transaction } from './transaction.ts';

const INSTRUCTIONS_MAX = 64;
const INSTRUCTION_ACCOUNTS_MAX = 255;
const KEYS_MAX = 256;
/** Bytes of a compute-budget instruction by its tag; other tags are unknown. */
const BUDGET_BYTES: Readonly<Record<number, number>> = { 1: 5, 2: 5, 3: 9, 4: 5 };
const LOOKUP_TABLE_TAG = 1;
const LAST_EXTENDED_SLOT_AT = 12;
const LAST_EXTENDED_START_AT = 20;

/** Where a transaction is sanitized: the slot of a bank, and its accounts. */
type Bank = Readonly<{ slot: bigint; account: ReadAccount }>;

/** Why a transaction cannot be sanitized at a bank; undefined when it can. */
export function sanitizeError(transaction: Transaction, bank: Bank): TransactionErrorJson | undefined {
  if (!isWellFormed(transaction)) return 'SanitizeFailure';
  return budgetError(transaction) ?? lookupError(transaction, bank);
}

function isWellFormed(transaction: Transaction): boolean {
  const { signatures, signers, readonlySigners, readonlyOthers, staticKeys, instructions, lookups } =
    transaction;
  const loaded = lookups.map(({ writable, readonly }) => writable.length + readonly.length);
  const keys = loaded.reduce((sum, count) => sum + count, staticKeys.length);
  if (signatures.length !== signers || signers + readonlyOthers > staticKeys.length) return false;
  // The first signer pays, so it is writable and no program.
  if (readonlySigners >= signers || loaded.includes(0) || keys > KEYS_MAX) return false;
  if (instructions.length > INSTRUCTIONS_MAX) return false;
  return instructions.every(
    ({ programIdIndex, accounts }) =>
      programIdIndex > 0 &&
      programIdIndex < staticKeys.length &&
      accounts.length <= INSTRUCTION_ACCOUNTS_MAX &&
      accounts.every((index) => index < keys),
  );
}

function budgetError(transaction: Transaction): TransactionErrorJson | undefined {
  const seen = new Set<number>();
  for (const [index, instruction] of transaction.instructions.entries()) {
    if (programOf(transaction, instruction) !== COMPUTE_BUDGET_PROGRAM) continue;
    const [tag = 0] = instruction.data;
    const bytes = BUDGET_BYTES[tag];
    if (bytes === undefined || instruction.data.length < bytes)
      return { InstructionError: [index, 'InvalidInstructionData'] };
    if (seen.has(tag)) return { DuplicateInstruction: index };
    seen.add(tag);
  }
  return undefined;
}

function lookupError({ lookups }: Transaction, bank: Bank): TransactionErrorJson | undefined {
  for (const { table, writable, readonly } of lookups) {
    const count = activeAddresses(table, bank);
    if (typeof count === 'string') return count;
    if ([...writable, ...readonly].some((index) => index >= count)) return 'InvalidAddressLookupTableIndex';
  }
  return undefined;
}

/** How many addresses of a table a transaction may use, or why it may use none. What was added in this slot is not active. */
function activeAddresses(table: Address, { slot, account }: Bank): number | string {
  const found = account(table);
  if (found === undefined) return 'AddressLookupTableNotFound';
  const { owner, data } = found;
  if (owner !== ADDRESS_LOOKUP_TABLE_PROGRAM) return 'InvalidAddressLookupTableOwner';
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.length < LOOKUP_TABLE_HEADER_BYTES || view.getUint32(0, true) !== LOOKUP_TABLE_TAG)
    return 'InvalidAddressLookupTableData';
  if (slot <= view.getBigUint64(LAST_EXTENDED_SLOT_AT, true)) return view.getUint8(LAST_EXTENDED_START_AT);
  return Math.floor((data.length - LOOKUP_TABLE_HEADER_BYTES) / 32);
}
