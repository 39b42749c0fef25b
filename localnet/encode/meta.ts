import type { TokenBalance, TransactionMeta } from '../chain/record.ts';
import type { TransactionErrorJson } from '../chain/transaction-error.ts';
import type { Json, JsonObject } from '../json/value.ts';
import { encodeTokenAmount } from './token-amount.ts';

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
