import { getBase58Decoder } from '@solana/kit';
import type { SimulationResult } from '../chain/simulate.ts';
import type { Json, JsonObject } from '../json/value.ts';
import { encodeReturnData } from '../chain/execution-json.ts';
import { allKeys } from '../chain/account-keys.ts';
import type { Transaction } from '../chain/transaction.ts';
import type { Execution } from '../chain/svm.ts';

const base58 = getBase58Decoder();

/** The parts of a simulation's answer that a preflight does not give. */
export type SimulationDetails = Readonly<{
  accounts?: Json;
  innerInstructions?: Json;
  replacementBlockhash?: Json;
  balances?: JsonObject;
}>;

/** RpcSimulateTransactionResult: all members, null where there is nothing. */
export function encodeSimulation(simulation: SimulationResult, details: SimulationDetails = {}): Json {
  return {
    accounts: details.accounts ?? null,
    err: simulation.error ?? null,
    fee: null,
    innerInstructions: details.innerInstructions ?? null,
    loadedAccountsDataSize: null,
    loadedAddresses: null,
    logs: simulation.logs,
    postBalances: null,
    postTokenBalances: null,
    preBalances: null,
    preTokenBalances: null,
    replacementBlockhash: details.replacementBlockhash ?? null,
    returnData: encodeReturnData(simulation),
    unitsConsumed: simulation.unitsConsumed,
    ...details.balances,
  };
}

/**
 * Inner instructions in the form that Agave gives for programs it cannot parse: addresses instead of indexes. No
 * parser runs here, so every program is such a one.
 */
export function encodeDecodedInner(
  execution: Execution,
  transaction: Transaction,
  loaded: SimulationResult['loaded'],
): Json {
  const keys = allKeys(transaction, loaded);
  return execution.innerInstructions.flatMap((list, index) => {
    if (list.length === 0) return [];
    const instructions = list.map((inner) => ({
      accounts: inner.accounts.map((at) => keys[at] ?? null),
      data: base58.decode(inner.data),
      programId: keys[inner.programIdIndex] ?? null,
      stackHeight: inner.stackHeight,
    }));
    return [{ index, instructions }];
  });
}
