import { type Address, getBase58Encoder } from '@solana/kit';
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
import { allKeys, readTransaction, type Transaction } from '../protocol/transaction.ts';
import { invalidParams, isAbsent, isBase58, RpcFailure } from '../request/params.ts';
import * as read from '../request/params.ts';
import { inContext, method, type NamedMethods } from './method.ts';

export const SEND_METHODS: NamedMethods = {
  sendTransaction: method(1, 1, (chain, [wire, options]) => {
    const config = read.config(options, 'RpcSendTransactionConfig');
    const transaction = readWireTransaction(wire, readWireEncoding(config.encoding));
    read.optionalU64(config.maxRetries, 'usize');
    const isSkipped = read.boolean(config.skipPreflight, false);
    preflight(chain, transaction, { ...config, commitment: read.preflightCommitment(config) }, isSkipped);
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
    const transaction = readWireTransaction(wire, readWireEncoding(config.encoding));
    const sigVerify = read.boolean(config.sigVerify, false);
    const isReplaced = read.boolean(config.replaceRecentBlockhash, false);
    if (sigVerify && isReplaced) throw invalidParams('sigVerify may not be used with replaceRecentBlockhash');
    const view = read.view(chain, config);
    const latest = chain.latestBlockhash(view.slot);
    const replaceBlockhash = isReplaced ? latest.blockhash : undefined;
    const result = simulate(chain, view, transaction, { sigVerify, replaceBlockhash });
    const { loaded, innerInstructions } = result;
    const keys = allKeys(transaction, loaded);
    const after = accountsAfter(view, result, transaction);
    const [pre, post] = [balancesOf(keys, view.account), balancesOf(keys, after)];
    const hasInner = read.boolean(config.innerInstructions, false);
    const succeeded = result.error === undefined ? after : undefined;
    return inContext(view.slot, {
      ...encodeSimulation(result),
      accounts: readAccounts(config.accounts, keys.length, view, succeeded),
      fee: feeOf(transaction),
      innerInstructions: hasInner ? encodeParsedInner(innerInstructions, keys) : null,
      loadedAddresses: loaded,
      preBalances: pre.lamports,
      postBalances: post.lamports,
      preTokenBalances: pre.tokens.map(encodeTokenBalance),
      postTokenBalances: post.tokens.map(encodeTokenBalance),
      replacementBlockhash: isReplaced ? latest : null,
    });
  }),
};

/** Simulates a transaction before it is sent, and throws -32002 when it fails; a skipped one only checks `minContextSlot`. */
function preflight(chain: Chain, transaction: Transaction, config: JsonObject, isSkipped: boolean): void {
  const view = read.view(chain, config);
  if (isSkipped) return;
  const result = simulate(chain, view, transaction, { sigVerify: true, replaceBlockhash: undefined });
  if (result.error === undefined) return;
  const message = `Transaction simulation failed: ${transactionErrorText(result.error)}`;
  throw new RpcFailure(-32002, message, encodeSimulation(result));
}

/** Runs a transaction and keeps nothing; throws when a signature is wrong or an index is out of range. */
function simulate(chain: Chain, ...parameters: Parameters<Chain['simulate']>): SimulationResult {
  const result = chain.simulate(...parameters);
  if (result.error === 'SignatureFailure')
    throw new RpcFailure(-32003, 'Transaction signature verification failure');
  if (result.error === 'SanitizeFailure')
    throw invalidParams('invalid transaction: Transaction failed to sanitize accounts offsets correctly');
  return result;
}

/** Sends a transfer from the faucet; gives its signature. Without a `blockhash`, takes the newest that makes it a new transaction. */
function airdrop(chain: Chain, to: Address, lamports: bigint, blockhash: string | undefined): string {
  const faucet = faucetKeypair();
  const newest = chain.slotAt('processed') - 1n;
  for (let age = 0n; age < BLOCKHASH_AGE_MAX; age += 1n) {
    const wire = transferWire(faucet, to, lamports, blockhash ?? chain.blockhashOf(newest - age));
    const transaction = transactionFrom(wire);
    // Two equal airdrops with one blockhash have one signature, and the second is refused: use an older blockhash.
    if (blockhash === undefined && chain.ledger.find(transaction.signature) !== undefined) continue;
    const outcome = chain.send(transaction);
    const error = outcome.kind === 'kept' ? outcome.record.meta.error : outcome.error;
    if (error !== null && error !== 'AlreadyProcessed')
      throw invalidParams(`airdrop request failed: ${transactionErrorText(error)}`);
    return transaction.signature;
  }
  throw invalidParams(`airdrop request failed: more than ${BLOCKHASH_AGE_MAX} equal requests at once`);
}

/** Reads accounts as they are after the simulation; a failed transaction has only paid its fee. */
function accountsAfter(view: View, result: SimulationResult, transaction: Transaction): ReadAccount {
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
function encodeSimulation(simulation: SimulationResult): JsonObject {
  return {
    accounts: null,
    err: simulation.error ?? null,
    fee: null,
    innerInstructions: null,
    loadedAccountsDataSize: null,
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

/*
 * A transaction as a parameter: its wire bytes in base58 or base64.
 */

const RAW_BYTES_MAX = 1_232;
const BASE58_CHARACTERS_MAX = 1_683;
const BASE64_CHARACTERS_MAX = 1_644;
const TYPE = 'solana_transaction::versioned::VersionedTransaction';
const base58Encoder = getBase58Encoder();

/** The encodings of the parameter; base58 is the default. */
type WireEncoding = 'base58' | 'base64';

/** Reads the encoding; Agave names the ones it supports. */
function readWireEncoding(value: Json | undefined): WireEncoding {
  if (isAbsent(value)) return 'base58';
  if (value === 'base58' || value === 'base64') return value;
  throw invalidParams(`unsupported encoding: ${read.string(value)}. Supported encodings: base58, base64`);
}

function readWireTransaction(value: Json | undefined, encoding: WireEncoding): Transaction {
  return transactionFrom(decode(read.string(value), encoding, TYPE));
}

/** Reads bytes as a transaction, or refuses with -32602. */
export function transactionFrom(wire: Uint8Array): Transaction {
  const read = readTransaction(wire);
  if (read.kind === 'read') return read.transaction;
  throw invalidParams(`failed to deserialize ${TYPE}: ${read.reason}`);
}

/** Decodes text, within Agave's sizes. */
export function decode(text: string, encoding: WireEncoding, type: string): Uint8Array {
  const charactersMax = encoding === 'base58' ? BASE58_CHARACTERS_MAX : BASE64_CHARACTERS_MAX;
  if (text.length > charactersMax) {
    throw invalidParams(
      `${encoding} encoded ${type} too large: ${text.length} bytes (max: encoded/raw ${charactersMax}/${RAW_BYTES_MAX})`,
    );
  }
  const wire = encoding === 'base58' ? decodeBase58(text) : Buffer.from(text, 'base64');
  if (encoding === 'base64' && wire.toString('base64') !== text)
    throw invalidParams('invalid base64 encoding: InvalidByte');
  if (wire.length > RAW_BYTES_MAX)
    throw invalidParams(`decoded ${type} too large: ${wire.length} bytes (max: ${RAW_BYTES_MAX} bytes)`);
  return new Uint8Array(wire);
}

function decodeBase58(text: string): Buffer {
  if (!isBase58(text)) throw invalidParams('invalid base58 encoding: InvalidCharacter');
  return Buffer.from(base58Encoder.encode(text));
}
