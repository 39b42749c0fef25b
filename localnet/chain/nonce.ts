/*
 * Durable nonces: a transaction whose first instruction advances a nonce account may carry, instead of a recent
 * blockhash, the nonce that the account holds.
 */
import { createHash } from 'node:crypto';
import { getBase58Decoder, getBase58Encoder, type Address } from '@solana/kit';
import type { AccountState } from './account.ts';
import { addressOf } from './address.ts';
import { SYSTEM_PROGRAM } from './known-address.ts';
import { programOf, type Transaction } from './transaction.ts';

const ADVANCE_NONCE_ACCOUNT = 4;
const NONCE_ACCOUNT_BYTES = 80;
const CURRENT_VERSION = 1;
const INITIALIZED = 1;
const AUTHORITY_AT = 8;
const NONCE_AT = 40;

const base58Encoder = getBase58Encoder();
const base58Decoder = getBase58Decoder();

/** The nonce account that carries a transaction, when its nonce is the transaction's blockhash and its authority signs. */
export function nonceAccountOf(
  transaction: Transaction,
  account: (address: Address) => AccountState | undefined,
): Address | undefined {
  const advance = transaction.instructions[0];
  if (advance === undefined || programOf(transaction, advance) !== SYSTEM_PROGRAM) return undefined;
  if (advance.data[0] !== ADVANCE_NONCE_ACCOUNT || advance.data[1] !== 0) return undefined;
  const nonceAddress = transaction.staticKeys[advance.accounts[0] ?? -1];
  if (nonceAddress === undefined) return undefined;
  const state = account(nonceAddress);
  if (state === undefined || state.owner !== SYSTEM_PROGRAM || state.data.length !== NONCE_ACCOUNT_BYTES)
    return undefined;
  const view = new DataView(state.data.buffer, state.data.byteOffset);
  if (view.getUint32(0, true) !== CURRENT_VERSION || view.getUint32(4, true) !== INITIALIZED)
    return undefined;
  if (base58Decoder.decode(state.data.subarray(NONCE_AT, NONCE_AT + 32)) !== transaction.recentBlockhash)
    return undefined;
  const authority = addressOf(state.data.subarray(AUTHORITY_AT, AUTHORITY_AT + 32));
  const signs = advance.accounts.some(
    (index) => index < transaction.signers && transaction.staticKeys[index] === authority,
  );
  return signs ? nonceAddress : undefined;
}

/** The nonce account after `blockhash` was used up by a transaction that failed. */
export function advancedNonce(state: AccountState, blockhash: string): AccountState {
  const data = new Uint8Array(state.data);
  data.set(
    createHash('sha256')
      .update('DURABLE_NONCE')
      .update(new Uint8Array(base58Encoder.encode(blockhash)))
      .digest(),
    NONCE_AT,
  );
  return { ...state, data };
}
