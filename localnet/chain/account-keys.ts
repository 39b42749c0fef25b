/*
 * The account keys of a transaction in the runtime's order: static keys, then writable and readonly keys loaded
 * from lookup tables; and which of them may be written.
 */
import type { Address } from '@solana/kit';
import { addressOf } from './address.ts';
import type { AccountState } from './account.ts';
import { ADDRESS_LOOKUP_TABLE_PROGRAM, LOADER_V3, NATIVE_LOADER, SYSVAR_OWNER } from './known-address.ts';
import type { Transaction } from './transaction.ts';

const TABLE_HEADER_BYTES = 56;

/** Keys loaded from lookup tables. */
export type LoadedKeys = Readonly<{ writable: readonly Address[]; readonly: readonly Address[] }>;

/** Looks the keys of a v0 message up. A table or an index that is not there gives nothing: the machine refuses it. */
export function loadKeys(
  transaction: Transaction,
  account: (address: Address) => AccountState | undefined,
): LoadedKeys {
  const writable: Address[] = [];
  const readonly: Address[] = [];
  for (const lookup of transaction.lookups) {
    const table = account(lookup.table);
    if (table === undefined || table.owner !== ADDRESS_LOOKUP_TABLE_PROGRAM) continue;
    const keyAt = (index: number) => {
      const start = TABLE_HEADER_BYTES + index * 32;
      return start + 32 <= table.data.length ? [addressOf(table.data.subarray(start, start + 32))] : [];
    };
    writable.push(...lookup.writable.flatMap(keyAt));
    readonly.push(...lookup.readonly.flatMap(keyAt));
  }
  return { writable, readonly };
}

/** All keys, in the order that indexes refer to. */
export function allKeys(transaction: Transaction, loaded: LoadedKeys): Address[] {
  return [...transaction.staticKeys, ...loaded.writable, ...loaded.readonly];
}

/** Whether the message asks to write the account at `index`. */
export function isRequestedWritable(transaction: Transaction, loaded: LoadedKeys, index: number): boolean {
  const { signers, readonlySigners, readonlyOthers, staticKeys } = transaction;
  if (index < signers) return index < signers - readonlySigners;
  if (index < staticKeys.length) return index < staticKeys.length - readonlyOthers;
  return index < staticKeys.length + loaded.writable.length;
}

/**
 * Whether the runtime lets the account be written: requested, and neither reserved (native programs, sysvars) nor
 * called as a program, unless the upgradeable loader takes part (Agave's `is_maybe_writable`).
 */
export function isWritable(
  transaction: Transaction,
  loaded: LoadedKeys,
  index: number,
  account: (address: Address) => AccountState | undefined,
): boolean {
  if (!isRequestedWritable(transaction, loaded, index)) return false;
  const keys = allKeys(transaction, loaded);
  const key = keys[index];
  if (key === undefined) return false;
  const owner = account(key)?.owner;
  if (owner === NATIVE_LOADER || owner === SYSVAR_OWNER || key === NATIVE_LOADER) return false;
  const isCalled = transaction.instructions.some((instruction) => instruction.programIdIndex === index);
  return !isCalled || keys.includes(LOADER_V3);
}
