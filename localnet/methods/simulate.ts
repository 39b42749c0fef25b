import { allKeys } from '../chain/account-keys.ts';
import type { View } from '../chain/accounts.ts';
import { balancesOf } from '../chain/balances.ts';
import { feeOf } from '../chain/fee.ts';
import type { SimulationResult } from '../chain/simulate.ts';
import type { Transaction } from '../chain/transaction.ts';
import { encodeAccount, readAccountForm } from '../encode/account.ts';
import { encodeTokenBalance } from '../encode/meta.ts';
import { isJsonObject, type Json, type JsonObject } from '../json/value.ts';
import { readView } from '../rpc/commitment.ts';
import { inContext } from '../rpc/context.ts';
import { invalidParams } from '../rpc/failure.ts';
import type { NamedMethods } from '../rpc/method.ts';
import { readAddress, readBoolean, readConfig, readList, wrongType } from '../rpc/params.ts';
import { invalidTransaction, signatureFailure } from './send.ts';
import { encodeDecodedInner, encodeSimulation } from './simulation.ts';
import { readWireEncoding, readWireTransaction } from './wire-transaction.ts';
import type { Address } from '@solana/kit';
import type { AccountState } from '../chain/account.ts';

/** Running a transaction without keeping it. */
export const SIMULATE_METHODS: NamedMethods = {
  simulateTransaction: {
    required: 1,
    optional: 1,
    answer: (chain, [wire, options]) => {
      const config = readConfig(options, 'RpcSimulateTransactionConfig');
      const transaction = readWireTransaction(wire, readWireEncoding(config.encoding));
      const sigVerify = readBoolean(config.sigVerify, false);
      const isReplaced = readBoolean(config.replaceRecentBlockhash, false);
      if (sigVerify && isReplaced)
        throw invalidParams('sigVerify may not be used with replaceRecentBlockhash');
      const view = readView(chain, config);
      const latest = chain.latestBlockhash(view.slot);
      const result = chain.simulate(view, transaction, {
        sigVerify,
        replaceBlockhash: isReplaced ? latest.blockhash : undefined,
      });
      if (result.error === 'SignatureFailure') throw signatureFailure();
      if (result.error === 'SanitizeFailure') throw invalidTransaction();
      const after = accountsAfter(view, result, transaction);
      const hasInner = readBoolean(config.innerInstructions, false);
      return inContext(
        view.slot,
        encodeSimulation(result, {
          accounts: readAccounts(config.accounts, transaction, result, view, after),
          innerInstructions: hasInner ? encodeDecodedInner(result, transaction, result.loaded) : null,
          replacementBlockhash: isReplaced ? latest : null,
          balances: encodeBalances(view, result, transaction, after),
        }),
      );
    },
  },
};

type Read = (address: Address) => AccountState | undefined;

/** The accounts as the transaction would leave them: with the fee alone taken, when it failed. */
function accountsAfter(view: View, result: SimulationResult, transaction: Transaction): Read {
  const payer = transaction.staticKeys[0];
  const paid = payer === undefined ? undefined : view.account(payer);
  const fee = feeOf(transaction);
  const changed = result.accounts();
  return function after(address) {
    if (result.error === undefined) return changed.get(address) ?? view.account(address);
    if (address !== payer || paid === undefined || paid.lamports < fee) return view.account(address);
    return { ...paid, lamports: paid.lamports - fee };
  };
}

function encodeBalances(
  view: View,
  result: SimulationResult,
  transaction: Transaction,
  after: Read,
): JsonObject {
  const keys = allKeys(transaction, result.loaded);
  const pre = balancesOf(keys, view.account);
  const post = balancesOf(keys, after);
  return {
    fee: feeOf(transaction),
    loadedAddresses: { readonly: result.loaded.readonly, writable: result.loaded.writable },
    preBalances: pre.lamports,
    postBalances: post.lamports,
    preTokenBalances: pre.tokens.map(encodeTokenBalance),
    postTokenBalances: post.tokens.map(encodeTokenBalance),
  };
}

function readAccounts(
  value: Json | undefined,
  transaction: Transaction,
  result: SimulationResult,
  view: View,
  after: Read,
): Json {
  if (value === undefined || value === null) return null;
  if (!isJsonObject(value)) throw wrongType(value, 'struct RpcSimulateTransactionAccountsConfig');
  const form = readAccountForm({ encoding: value.encoding }, 'base64');
  if (form.encoding === 'binary' || form.encoding === 'base58')
    throw invalidParams('base58 encoding not supported');
  const addresses = readList(value.addresses);
  const max = allKeys(transaction, result.loaded).length;
  if (addresses.length > max) throw invalidParams(`Too many accounts provided; max ${max}`);
  return addresses.map(readAddress).map((address) => {
    if (result.error !== undefined) return null;
    const state = after(address);
    return state === undefined || state.lamports === 0n ? null : encodeAccount(state, form, view.account);
  });
}
