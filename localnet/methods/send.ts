import type { Address } from '@solana/kit';
import type { View } from '../chain/accounts.ts';
import { balancesOf, type SimulationResult } from '../chain/bank.ts';
import type { Chain } from '../chain/chain.ts';
import { encodeAccount, readAccountForm } from '../encode/account.ts';
import { encodeParsedInner, encodeTokenBalance } from '../encode/transaction.ts';
import type { Json, JsonObject } from '../json/value.ts';
import type { ReadAccount } from '../protocol/account.ts';
import { transactionErrorText } from '../protocol/error.ts';
import { feeOf } from '../protocol/fee.ts';
import { faucetKeypair, transferWire } from '../protocol/keypair.ts';
import { BLOCKHASH_AGE_MAX } from '../protocol/slot.ts';
import { sanitizeError } from '../protocol/sanitize.ts';
import { allKeys, type Transaction } from '../protocol/transaction.ts';
import { transactionFrom, wireTransaction } from '../request/encoded.ts';
import { invalidParams, isAbsent, RpcFailure } from '../request/params.ts';
import * as read from '../request/params.ts';
import { inContext, method, type NamedMethods } from './method.ts';

export const SEND_METHODS: NamedMethods = {
  sendTransaction: method(1, 1, (chain, [wire, options]) => {
    const config = read.config(options, 'RpcSendTransactionConfig');
    const named = read.preflightCommitment(config);
    const isSkipped = read.boolean(config.skipPreflight, false);
    read.optionalU64(config.maxRetries, 'usize');
    const transaction = wireTransaction(wire, config.encoding);
    const view = read.view(chain, { ...config, commitment: isSkipped ? 'processed' : named });
    requireSanitized(transaction, view);
    if (!isSkipped) preflight(chain, view, transaction);
    // As on a cluster, the caller does not hear of a refusal by the bank: the signature never gets a status.
    chain.send(transaction);
    return transaction.signature;
  }),
  requestAirdrop: method(2, 1, (chain, [address, lamports, options]) => {
    const to = read.address(address);
    const amount = read.u64(lamports);
    const config = read.config(options, 'RpcRequestAirdropConfig');
    const blockhash = isAbsent(config.recentBlockhash) ? undefined : read.address(config.recentBlockhash);
    return airdrop(chain, to, amount, blockhash);
  }),
  simulateTransaction: method(1, 1, (chain, [wire, options]) => {
    const config = read.config(options, 'RpcSimulateTransactionConfig');
    const transaction = wireTransaction(wire, config.encoding);
    const sigVerify = read.boolean(config.sigVerify, false);
    const isReplaced = read.boolean(config.replaceRecentBlockhash, false);
    if (sigVerify && isReplaced) throw invalidParams('sigVerify may not be used with replaceRecentBlockhash');
    const view = read.view(chain, config);
    const latest = chain.latestBlockhash(view.slot);
    const replaceBlockhash = isReplaced ? latest.blockhash : undefined;
    requireSanitized(transaction, view);
    const result = chain.simulate(view, transaction, { sigVerify, replaceBlockhash });
    const keys = allKeys(transaction, result.loaded);
    const after = accountsAfter(view, result, transaction);
    const hasInner = read.boolean(config.innerInstructions, false) && result.stage === 'processed';
    const succeeded = result.error === undefined ? after : undefined;
    return inContext(view.slot, {
      ...encodeSimulation(result, transaction),
      ...(result.stage === 'unverified' ? {} : encodeBothBalances(keys, view.account, after)),
      accounts: readAccounts(config.accounts, keys.length, view, succeeded),
      innerInstructions: hasInner ? encodeParsedInner(result.innerInstructions, keys) : null,
      loadedAddresses: result.loaded,
      replacementBlockhash: isReplaced ? latest : null,
    });
  }),
};

/** Refuses what is no transaction at a bank; Agave does so before signatures and preflight. */
function requireSanitized(transaction: Transaction, view: View): void {
  const error = sanitizeError(transaction, view);
  if (error !== undefined) throw invalidParams(`invalid transaction: ${transactionErrorText(error)}`);
}

/** Simulates a transaction before it is sent, and throws -32002 when it fails. */
function preflight(chain: Chain, view: View, transaction: Transaction): void {
  const result = chain.simulate(view, transaction, { sigVerify: true, replaceBlockhash: undefined });
  if (result.error === undefined) return;
  const message = `Transaction simulation failed: ${transactionErrorText(result.error)}`;
  throw new RpcFailure(-32002, message, encodeSimulation(result, transaction));
}

/**
 * Sends a transfer from the faucet; gives its signature, of which the status tells whether it landed. Without a `blockhash`,
 * takes the newest that makes it a new transaction.
 */
function airdrop(chain: Chain, to: Address, lamports: bigint, blockhash: string | undefined): string {
  const faucet = faucetKeypair();
  const newest = chain.slotAt('processed') - 1n;
  for (let age = 0n; age < BLOCKHASH_AGE_MAX; age += 1n) {
    const wire = transferWire(faucet, to, lamports, blockhash ?? chain.blockhashOf(newest - age));
    const transaction = transactionFrom(wire);
    // Two equal airdrops with one blockhash have one signature, and the second is refused: use an older blockhash.
    if (blockhash === undefined && chain.ledger.find(transaction.signature) !== undefined) continue;
    chain.send(transaction);
    return transaction.signature;
  }
  throw invalidParams(`airdrop request failed: more than ${BLOCKHASH_AGE_MAX} equal requests at once`);
}

/** Reads accounts as they are after the simulation; a failed transaction has only paid its fee, if that. */
function accountsAfter(view: View, result: SimulationResult, transaction: Transaction): ReadAccount {
  const [payer] = transaction.staticKeys;
  const changed = result.accounts();
  return function after(address) {
    const before = view.account(address);
    if (result.error === undefined) return changed.get(address) ?? before;
    if (address !== payer || before === undefined || result.stage !== 'processed') return before;
    return { ...before, lamports: before.lamports - feeOf(transaction) };
  };
}

function encodeBothBalances(keys: readonly Address[], before: ReadAccount, after: ReadAccount): JsonObject {
  const [pre, post] = [balancesOf(keys, before), balancesOf(keys, after)];
  return {
    preBalances: pre.lamports,
    postBalances: post.lamports,
    preTokenBalances: pre.tokens.map(encodeTokenBalance),
    postTokenBalances: post.tokens.map(encodeTokenBalance),
  };
}

/** The accounts that the caller asks for, as they are after the simulation; all null when the transaction failed (`after` is undefined). */
function readAccounts(value: Json | undefined, max: number, view: View, after: ReadAccount | undefined) {
  if (isAbsent(value)) return null;
  const config = read.struct(value, 'struct RpcSimulateTransactionAccountsConfig');
  const form = readAccountForm({ encoding: config.encoding }, 'base64');
  if (form.encoding === 'binary' || form.encoding === 'base58')
    throw invalidParams('base58 encoding not supported');
  const addresses = read.list(config.addresses);
  if (addresses.length > max) throw invalidParams(`Too many accounts provided; max ${max}`);
  return addresses.map(read.address).map((address) => {
    const state = after?.(address);
    const isThere = state !== undefined && state.lamports > 0n;
    return isThere ? encodeAccount(address, state, form, view.account) : null;
  });
}

/** Agave's RpcSimulateTransactionResult as a failed preflight has it: every member, most of them null. */
function encodeSimulation(simulation: SimulationResult, transaction: Transaction): JsonObject {
  return {
    accounts: null,
    err: simulation.error ?? null,
    fee: simulation.stage === 'processed' ? feeOf(transaction) : null,
    innerInstructions: null,
    loadedAccountsDataSize: simulation.loadedBytes,
    loadedAddresses: null,
    logs: simulation.logs,
    postBalances: null,
    postTokenBalances: null,
    preBalances: null,
    preTokenBalances: null,
    replacementBlockhash: null,
    returnData: simulation.returnData,
    unitsConsumed: simulation.unitsConsumed,
  };
}
