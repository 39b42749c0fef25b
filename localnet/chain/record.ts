import type { Address } from '@solana/kit';
import type { Json } from '../json/value.ts';
import type { TransactionErrorJson } from './transaction-error.ts';

/** A token account's balance before or after a transaction, at its place among the account keys. */
export type TokenBalance = Readonly<{
  accountIndex: bigint;
  mint: Address;
  owner: Address;
  programId: Address;
  amount: bigint;
  decimals: bigint;
}>;

/** What became of a transaction, as it is kept. Integers are bigint, because that is how they are read back. */
export type TransactionMeta = Readonly<{
  error: TransactionErrorJson | null;
  fee: bigint;
  preBalances: readonly bigint[];
  postBalances: readonly bigint[];
  preTokenBalances: readonly TokenBalance[];
  postTokenBalances: readonly TokenBalance[];
  writableKeys: readonly Address[];
  loadedWritable: readonly Address[];
  loadedReadonly: readonly Address[];
  logs: readonly string[];
  unitsConsumed: bigint;
  /** In Agave's form, without empty lists. */
  innerInstructions: Json;
  /** In Agave's form, or null. */
  returnData: Json;
  memo: string | null;
}>;

/** A transaction in its block: `position` counts from 0 within the slot. */
export type TransactionRecord = Readonly<{
  slot: bigint;
  position: number;
  signature: string;
  wire: Uint8Array;
  meta: TransactionMeta;
}>;
