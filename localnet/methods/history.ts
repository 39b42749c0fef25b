import type { Chain } from '../chain/chain.ts';
import type { TransactionRecord } from '../chain/record.ts';
import { readTransaction, type Transaction } from '../chain/transaction.ts';
import { encodeMeta, encodeStatus } from '../encode/meta.ts';
import { encodeTransaction, encodeVersion, readTransactionEncoding } from '../encode/transaction.ts';
import { type Json, type JsonObject } from '../json/value.ts';
import { readHistoryCommitment, requireContextSlot } from '../rpc/commitment.ts';
import { inContext, value } from '../rpc/context.ts';
import { invalidParams, RpcFailure } from '../rpc/failure.ts';
import type { NamedMethods } from '../rpc/method.ts';
import {
  readAddress,
  readBoolean,
  readConfig,
  readList,
  readOptionalU64,
  readSignature,
} from '../rpc/params.ts';
import type { Place } from '../store/ledger.ts';

const STATUSES_MAX = 256;
// The status cache of a node: finalized slots whose signatures it still knows.
const STATUS_CACHE_SLOTS = 300n;
const SIGNATURES_MAX = 1_000n;
const END_OF_CHAIN: Place = { slot: 2n ** 62n, position: 0 };
const START_OF_CHAIN: Place = { slot: -1n, position: 0 };

/** Transactions by signature and by address. */
export const HISTORY_METHODS: NamedMethods = {
  getTransaction: {
    required: 1,
    optional: 1,
    answer: (chain, [signature, options]) => {
      const name = readSignature(signature);
      const config = readEncodingConfig(options);
      const encoding = readTransactionEncoding(config.encoding);
      const versionMax = readOptionalU64(config.maxSupportedTransactionVersion, 'u8', 255n);
      const slotMax = chain.slotAt(readHistoryCommitment(config));
      const record = chain.ledger.find(name);
      if (record === undefined || record.slot > slotMax) return value(null);
      const transaction = transactionOf(record);
      return value({
        blockTime: chain.blockTimeOf(record.slot),
        meta: encodeMeta(record.meta, true),
        slot: record.slot,
        transaction: encodeTransaction(transaction, encoding),
        version: encodeVersion(transaction, versionMax),
      });
    },
  },
  getSignatureStatuses: {
    required: 1,
    optional: 1,
    answer: (chain, [signatures, options]) => {
      const listed = readList(signatures);
      if (listed.length > STATUSES_MAX) throw invalidParams(`Too many inputs provided; max ${STATUSES_MAX}`);
      const names = listed.map(readSignature);
      const config = readConfig(options, 'RpcSignatureStatusConfig');
      const isSearched = readBoolean(config.searchTransactionHistory, false);
      return inContext(
        chain.slotAt('processed'),
        names.map((name) => statusOf(chain, name, isSearched)),
      );
    },
  },
  getSignaturesForAddress: {
    required: 1,
    optional: 1,
    answer: (chain, [address, options]) => {
      const key = readAddress(address);
      const config = readConfig(options, 'RpcSignaturesForAddressConfig');
      const limit = readOptionalU64(config.limit, 'usize') ?? SIGNATURES_MAX;
      if (limit < 1n || limit > SIGNATURES_MAX) throw invalidParams(`Invalid limit; max ${SIGNATURES_MAX}`);
      const slotMax = chain.slotAt(readHistoryCommitment(config));
      requireContextSlot(slotMax, config);
      const tip: Place = { slot: slotMax + 1n, position: 0 };
      const before = earlier(readCursor(chain, config.before) ?? END_OF_CHAIN, tip);
      const after = readCursor(chain, config.until) ?? START_OF_CHAIN;
      return value(
        chain.ledger.naming(key, before, after, Number(limit)).map((record) => signatureRow(chain, record)),
      );
    },
  },
};

/** A configuration, or the old form of a bare encoding. */
export function readEncodingConfig(options: Json | undefined): JsonObject {
  return typeof options === 'string' ? { encoding: options } : readConfig(options, 'RpcTransactionConfig');
}

/** The transaction of a record, which was read once before it was kept. */
export function transactionOf(record: TransactionRecord): Transaction {
  const read = readTransaction(record.wire);
  if (read.kind === 'read') return read.transaction;
  throw new Error(`the kept transaction ${record.signature} cannot be read: ${read.reason}`);
}

function readCursor(chain: Chain, signature: Json | undefined): Place | undefined {
  if (signature === undefined || signature === null) return undefined;
  const name = readSignature(signature);
  const record = chain.ledger.find(name);
  if (record === undefined) throw new RpcFailure(-32020, `Transaction ${name} not found`);
  return record;
}

function earlier(one: Place, other: Place): Place {
  return one.slot < other.slot || (one.slot === other.slot && one.position < other.position) ? one : other;
}

function statusName(chain: Chain, slot: bigint): string {
  if (slot <= chain.slotAt('finalized')) return 'finalized';
  return slot <= chain.slotAt('confirmed') ? 'confirmed' : 'processed';
}

function statusOf(chain: Chain, signature: string, isSearched: boolean): Json {
  const record = chain.ledger.find(signature);
  if (record === undefined) return null;
  const finalized = chain.slotAt('finalized');
  if (!isSearched && record.slot + STATUS_CACHE_SLOTS < finalized) return null;
  return {
    confirmationStatus: statusName(chain, record.slot),
    confirmations: record.slot <= finalized ? null : chain.slotAt('processed') - record.slot,
    err: record.meta.error,
    slot: record.slot,
    status: encodeStatus(record.meta.error),
  };
}

function signatureRow(chain: Chain, record: TransactionRecord): Json {
  return {
    blockTime: chain.blockTimeOf(record.slot),
    confirmationStatus: statusName(chain, record.slot),
    err: record.meta.error,
    memo: record.meta.memo,
    signature: record.signature,
    slot: record.slot,
    transactionIndex: record.position,
  };
}
