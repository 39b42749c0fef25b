import { getBase58Decoder } from '@solana/kit';
import { encodeTokenAmount } from './data.ts';
import type { Json, JsonObject } from '../json/value.ts';
import type { TransactionErrorJson } from '../protocol/error.ts';
import type { Transaction } from '../protocol/transaction.ts';
import { invalidParams, readVariant, RpcFailure } from '../request/params.ts';
import type { TokenBalance, TransactionMeta } from '../store/ledger.ts';

/** How transactions are put into JSON. `binary` is the old form: a bare base58 string. */
type TransactionEncoding = 'binary' | 'base58' | 'base64' | 'json';

const base58 = getBase58Decoder();
const TOP_LEVEL_STACK_HEIGHT = 1;

/** Reads an encoding; jsonParsed is refused, because no instruction parser runs here. */
export function readTransactionEncoding(value: Json | undefined): TransactionEncoding {
  const encoding = readVariant(value, ['binary', 'base64', 'base58', 'json', 'jsonParsed'], 'json');
  if (encoding !== 'jsonParsed') return encoding;
  throw invalidParams('jsonParsed is not offered for transactions; use json, base64 or base58');
}

/** A transaction in an encoding. */
export function encodeTransaction(transaction: Transaction, encoding: TransactionEncoding): Json {
  switch (encoding) {
    case 'binary':
      return base58.decode(transaction.wire);
    case 'base58':
      return [base58.decode(transaction.wire), 'base58'];
    case 'base64':
      return [Buffer.from(transaction.wire).toString('base64'), 'base64'];
    case 'json':
      return { message: encodeMessage(transaction), signatures: transaction.signatures };
  }
}

function encodeMessage(transaction: Transaction): Json {
  return {
    accountKeys: transaction.staticKeys,
    addressTableLookups: transaction.version === 'legacy' ? undefined : encodeLookups(transaction),
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

function encodeLookups(transaction: Transaction): Json {
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
export function encodeMeta(meta: TransactionMeta, hasRewards: boolean): Json {
  return {
    ...encodeBalances(meta),
    computeUnitsConsumed: meta.unitsConsumed,
    innerInstructions: meta.innerInstructions,
    loadedAddresses: { readonly: meta.loadedReadonly, writable: meta.loadedWritable },
    logMessages: meta.logs,
    returnData: meta.returnData === null ? undefined : meta.returnData,
    // Nobody earns a reward on this chain: fees are burned.
    rewards: hasRewards ? [] : undefined,
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

/** A token balance in Agave's form. */
export function encodeTokenBalance(balance: TokenBalance): Json {
  return {
    accountIndex: balance.accountIndex,
    mint: balance.mint,
    owner: balance.owner,
    programId: balance.programId,
    uiTokenAmount: encodeTokenAmount(balance.amount, Number(balance.decimals)),
  };
}
