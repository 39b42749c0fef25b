import { type Address, getBase58Decoder, getBase58Encoder } from '@solana/kit';
import type { Json, JsonObject } from '../json/value.ts';
import { SYSTEM_PROGRAM } from '../protocol/address.ts';
import type { TransactionErrorJson } from '../protocol/error.ts';
import { allKeys, type Transaction } from '../protocol/transaction.ts';
import { RpcFailure } from '../request/params.ts';
import * as read from '../request/params.ts';
import type { InnerInstructions, TokenBalance, TransactionMeta } from '../store/ledger.ts';
import { encodeInstruction, type KeyedInstruction } from './instruction.ts';
import { encodeTokenAmount } from './token.ts';

/** How transactions are put into JSON. `binary` is the old form: a bare base58 string. */
export type TransactionEncoding = 'binary' | 'base58' | 'base64' | 'json' | 'jsonParsed';

const base58 = getBase58Decoder();
const base58Encoder = getBase58Encoder();
const TOP_LEVEL_STACK_HEIGHT = 1;

/** Reads an encoding; json when absent. */
export function readTransactionEncoding(value: Json | undefined): TransactionEncoding {
  return read.variant(value, ['binary', 'base64', 'base58', 'json', 'jsonParsed'], 'json');
}

export function encodeTransaction(
  transaction: Transaction,
  encoding: TransactionEncoding,
  meta: TransactionMeta,
): Json {
  const { signatures } = transaction;
  switch (encoding) {
    case 'binary':
      return base58.decode(transaction.wire);
    case 'base58':
      return [base58.decode(transaction.wire), 'base58'];
    case 'base64':
      return [Buffer.from(transaction.wire).toString('base64'), 'base64'];
    case 'json':
      return { message: encodeMessage(transaction), signatures };
    case 'jsonParsed':
      return { message: encodeParsedMessage(transaction, meta), signatures };
  }
}

function encodeMessage(transaction: Transaction): Json {
  return {
    accountKeys: transaction.staticKeys,
    addressTableLookups: encodeLookups(transaction),
    header: {
      numReadonlySignedAccounts: transaction.readonlySigners,
      numReadonlyUnsignedAccounts: transaction.readonlyOthers,
      numRequiredSignatures: transaction.signers,
    },
    instructions: transaction.instructions.map((instruction) => ({
      accounts: instruction.accounts,
      data: base58.decode(instruction.data),
      programIdIndex: instruction.programIdIndex,
      stackHeight: TOP_LEVEL_STACK_HEIGHT,
    })),
    recentBlockhash: transaction.recentBlockhash,
  };
}

function encodeParsedMessage(transaction: Transaction, meta: TransactionMeta): Json {
  const keys = keysOf(transaction, meta);
  return {
    accountKeys: encodeKeys(transaction, meta),
    addressTableLookups: encodeLookups(transaction),
    instructions: transaction.instructions.map((instruction) =>
      encodeInstruction(keyed(instruction, keys, instruction.data, TOP_LEVEL_STACK_HEIGHT)),
    ),
    recentBlockhash: transaction.recentBlockhash,
  };
}

/** The account keys, each with what the transaction may do with it and where it is from. */
export function encodeKeys(transaction: Transaction, meta: TransactionMeta): Json {
  const writable = new Set<string>(meta.writableKeys);
  return keysOf(transaction, meta).map((key, index) => ({
    pubkey: key,
    signer: index < transaction.signers,
    source: index < transaction.staticKeys.length ? 'transaction' : 'lookupTable',
    writable: writable.has(key),
  }));
}

function keysOf(transaction: Transaction, { loadedWritable, loadedReadonly }: TransactionMeta): Address[] {
  return allKeys(transaction, { writable: loadedWritable, readonly: loadedReadonly });
}

export function encodeParsedInner(inner: InnerInstructions, keys: readonly Address[]): Json {
  return inner.map(({ index, instructions }) => ({
    index,
    instructions: instructions.map((instruction) => {
      const data = new Uint8Array(base58Encoder.encode(instruction.data));
      return encodeInstruction(keyed(instruction, keys, data, instruction.stackHeight));
    }),
  }));
}

type Compiled = Readonly<{ programIdIndex: number | bigint; accounts: readonly (number | bigint)[] }>;

/** The machine ran it, so every index is in range. */
function keyed(
  { programIdIndex, accounts }: Compiled,
  keys: readonly Address[],
  data: Uint8Array,
  stackHeight: Json,
): KeyedInstruction {
  const keyAt = (index: number | bigint) => keys[Number(index)] ?? SYSTEM_PROGRAM;
  return { programId: keyAt(programIdIndex), accounts: accounts.map(keyAt), data, stackHeight };
}

/** Only newer messages have any. */
function encodeLookups(transaction: Transaction): Json | undefined {
  if (transaction.version === 'legacy') return undefined;
  return transaction.lookups.map((lookup) => ({
    accountKey: lookup.table,
    readonlyIndexes: lookup.readonly,
    writableIndexes: lookup.writable,
  }));
}

/**
 * The `version` member: absent for callers that name no maximum, who are refused with -32015 when a transaction is
 * newer than what they can read.
 */
export function encodeVersion(transaction: Transaction, versionMax: bigint | undefined): Json | undefined {
  const { version } = transaction;
  if (versionMax !== undefined && (version === 'legacy' || BigInt(version) <= versionMax)) return version;
  if (version === 'legacy') return undefined;
  throw new RpcFailure(
    -32015,
    `Transaction version (${version}) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": ${version}`,
  );
}

/** The meta of a transaction as getTransaction and a full getBlock give it. */
export function encodeMeta(
  transaction: Transaction,
  encoding: TransactionEncoding,
  meta: TransactionMeta,
  hasRewards: boolean,
): Json {
  const isParsed = encoding === 'jsonParsed';
  return {
    ...encodeBalances(meta),
    computeUnitsConsumed: meta.unitsConsumed,
    innerInstructions: isParsed
      ? encodeParsedInner(meta.innerInstructions, keysOf(transaction, meta))
      : meta.innerInstructions,
    // Parsed account keys say where each is from.
    loadedAddresses: isParsed ? undefined : { readonly: meta.loadedReadonly, writable: meta.loadedWritable },
    logMessages: meta.logs,
    returnData: meta.returnData === null ? undefined : meta.returnData,
    // No rewards are paid on this chain: fees are burned.
    rewards: hasRewards ? [] : null,
  };
}

/** The meta that transactionDetails "accounts" gives. */
export function encodeBalances(meta: TransactionMeta): JsonObject {
  return {
    err: meta.error,
    fee: meta.fee,
    postBalances: meta.postBalances,
    postTokenBalances: meta.postTokenBalances.map(encodeTokenBalance),
    preBalances: meta.preBalances,
    preTokenBalances: meta.preTokenBalances.map(encodeTokenBalance),
    status: encodeStatus(meta.error),
  };
}

/** A result in Rust's words: `{"Ok":null}` or `{"Err":…}`. */
export function encodeStatus(error: TransactionErrorJson | null): Json {
  return error === null ? { Ok: null } : { Err: error };
}

export function encodeTokenBalance(balance: TokenBalance): Json {
  return {
    accountIndex: balance.accountIndex,
    mint: balance.mint,
    owner: balance.owner,
    programId: balance.programId,
    uiTokenAmount: encodeTokenAmount(balance.amount, Number(balance.decimals)),
  };
}
