import { getBase58Decoder } from '@solana/kit';
import type { Transaction } from '../chain/transaction.ts';
import type { Json } from '../json/value.ts';
import { invalidParams, RpcFailure } from '../rpc/failure.ts';
import { readVariant } from '../rpc/params.ts';

/** How transactions are put into JSON. `binary` is the old form: a bare base58 string. */
export type TransactionEncoding = 'binary' | 'base58' | 'base64' | 'json';

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
