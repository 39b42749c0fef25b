import type { Address } from '@solana/kit';
import type { Chain } from '../chain/chain.ts';
import { transferWire } from '../chain/faucet.ts';
import type { Transaction } from '../chain/transaction.ts';
import { transactionErrorText } from '../chain/transaction-error.ts';
import { faucetKeypair } from '../genesis/keypair.ts';
import type { JsonObject } from '../json/value.ts';
import { readView } from '../rpc/commitment.ts';
import { value } from '../rpc/context.ts';
import { invalidParams, RpcFailure } from '../rpc/failure.ts';
import type { NamedMethods } from '../rpc/method.ts';
import {
  readAddress,
  readBlockhash,
  readBoolean,
  readConfig,
  readOptionalU64,
  readU64,
} from '../rpc/params.ts';
import { BLOCKHASH_AGE_MAX } from '../chain/blockhash.ts';
import { encodeSimulation } from './simulation.ts';
import { readWireEncoding, readWireTransaction, transactionFrom } from './wire-transaction.ts';

/** What changes the chain. */
export const SEND_METHODS: NamedMethods = {
  sendTransaction: {
    required: 1,
    optional: 1,
    answer: (chain, [wire, options]) => {
      const config = readConfig(options, 'RpcSendTransactionConfig');
      const transaction = readWireTransaction(wire, readWireEncoding(config.encoding));
      readOptionalU64(config.maxRetries, 'usize');
      const isUnchecked = readBoolean(config.skipPreflight, false);
      preflight(chain, transaction, { ...config, commitment: config.preflightCommitment }, isUnchecked);
      // As on a cluster, what the bank refuses after this vanishes: its signature just never appears.
      chain.send(transaction);
      return value(transaction.signature);
    },
  },
  requestAirdrop: {
    required: 2,
    optional: 1,
    answer: (chain, [address, lamports, options]) => {
      const to = readAddress(address);
      const amount = readU64(lamports);
      const config = readConfig(options, 'RpcRequestAirdropConfig');
      const blockhash =
        config.recentBlockhash === undefined || config.recentBlockhash === null
          ? undefined
          : readBlockhash(config.recentBlockhash);
      return value(airdrop(chain, to, amount, blockhash));
    },
  },
};

function preflight(chain: Chain, transaction: Transaction, config: JsonObject, isUnchecked: boolean): void {
  const view = readView(chain, config);
  if (isUnchecked) return;
  const simulation = chain.simulate(view, transaction, { sigVerify: true, replaceBlockhash: undefined });
  if (simulation.error === undefined) return;
  if (simulation.error === 'SignatureFailure') throw signatureFailure();
  if (simulation.error === 'SanitizeFailure') throw invalidTransaction();
  throw new RpcFailure(
    -32002,
    `Transaction simulation failed: ${transactionErrorText(simulation.error)}`,
    encodeSimulation(simulation),
  );
}

/** -32003. */
export function signatureFailure(): RpcFailure {
  return new RpcFailure(-32003, 'Transaction signature verification failure');
}

/** -32602 for a message whose indexes or counts do not fit. */
export function invalidTransaction(): RpcFailure {
  return invalidParams('invalid transaction: Transaction failed to sanitize accounts offsets correctly');
}

function airdrop(chain: Chain, to: Address, lamports: bigint, blockhash: string | undefined): string {
  const faucet = faucetKeypair();
  const newest = chain.slotAt('processed') - 1n;
  for (let age = 0n; age < BLOCKHASH_AGE_MAX; age += 1n) {
    const wire = transferWire(faucet, to, lamports, blockhash ?? chain.blockhashOf(newest - age));
    const transaction = transactionFrom(wire);
    // The same airdrop within a slot would be the same transaction: an older blockhash makes it another one.
    if (blockhash === undefined && chain.ledger.find(transaction.signature) !== undefined) continue;
    const outcome = chain.send(transaction);
    if (outcome.kind === 'refused' && outcome.error !== 'AlreadyProcessed') {
      throw invalidParams(`airdrop request failed: ${transactionErrorText(outcome.error)}`);
    }
    const error = outcome.kind === 'kept' ? outcome.record.meta.error : null;
    if (error !== null) throw invalidParams(`airdrop request failed: ${transactionErrorText(error)}`);
    return transaction.signature;
  }
  throw invalidParams(`airdrop request failed: more than ${BLOCKHASH_AGE_MAX} equal requests at once`);
}
