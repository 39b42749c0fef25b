import type { Chain } from '../chain/chain.ts';
import {
  encodeBalances,
  encodeKeys,
  encodeMeta,
  encodeStatus,
  encodeTransaction,
  encodeVersion,
  readTransactionEncoding,
} from '../encode/transaction.ts';
import { isJsonObject, type Json, type JsonObject, piecesJson } from '../json/value.ts';
import { readTransaction, type Transaction } from '../protocol/transaction.ts';
import {
  invalidParams,
  readAddress,
  readBoolean,
  readConfig,
  readHistoryCommitment,
  readList,
  readOptionalU64,
  readSignature,
  readU64,
  readVariant,
  requireContextSlot,
  RpcFailure,
} from '../request/params.ts';
import type { Place, TransactionRecord } from '../store/ledger.ts';
import { inContext, method, type NamedMethods } from './method.ts';

const STATUSES_MAX = 256;
// The status cache of a node: finalized slots whose signatures it still knows.
const STATUS_CACHE_SLOTS = 300n;
const SIGNATURES_MAX = 1_000n;
const END_OF_CHAIN: Place = { slot: 2n ** 62n, position: 0 };
const START_OF_CHAIN: Place = { slot: -1n, position: 0 };
const SLOT_RANGE_MAX = 500_000n;
const SLOTS_PER_PIECE = 4_096;

/** Transactions by signature and by address, and blocks by slot. Every slot since 0 has a block; most are empty. */
export const HISTORY_METHODS: NamedMethods = {
  getTransaction: method(1, 1, (chain, [signature, options]) => {
    const name = readSignature(signature);
    const config = readEncodingConfig(options);
    const encoding = readTransactionEncoding(config.encoding);
    const versionMax = readOptionalU64(config.maxSupportedTransactionVersion, 'u8', 255n);
    const slotMax = chain.slotAt(readHistoryCommitment(config));
    const record = chain.ledger.find(name);
    if (record === undefined || record.slot > slotMax) return null;
    const transaction = transactionOf(record);
    return {
      blockTime: chain.blockTimeOf(record.slot),
      meta: encodeMeta(transaction, encoding, record.meta, true),
      slot: record.slot,
      transaction: encodeTransaction(transaction, encoding, record.meta),
      version: encodeVersion(transaction, versionMax),
    };
  }),
  getSignatureStatuses: method(1, 1, (chain, [signatures, options]) => {
    const listed = readList(signatures);
    if (listed.length > STATUSES_MAX) throw invalidParams(`Too many inputs provided; max ${STATUSES_MAX}`);
    const names = listed.map(readSignature);
    const config = readConfig(options, 'RpcSignatureStatusConfig');
    const isSearched = readBoolean(config.searchTransactionHistory, false);
    return inContext(
      chain.slotAt('processed'),
      names.map((name) => statusOf(chain, name, isSearched)),
    );
  }),
  getSignaturesForAddress: method(1, 1, (chain, [address, options]) => {
    const key = readAddress(address);
    const config = readConfig(options, 'RpcSignaturesForAddressConfig');
    const limit = readOptionalU64(config.limit, 'usize') ?? SIGNATURES_MAX;
    if (limit < 1n || limit > SIGNATURES_MAX) throw invalidParams(`Invalid limit; max ${SIGNATURES_MAX}`);
    const slotMax = chain.slotAt(readHistoryCommitment(config));
    requireContextSlot(slotMax, config);
    const tip: Place = { slot: slotMax + 1n, position: 0 };
    const before = earlier(readCursor(chain, config.before) ?? END_OF_CHAIN, tip);
    const after = readCursor(chain, config.until) ?? START_OF_CHAIN;
    return chain.ledger
      .naming(key, before, after, Number(limit))
      .map((record) => signatureRow(chain, record));
  }),
  getBlock: method(1, 1, (chain, [slotParam, options]) => {
    const slot = readU64(slotParam);
    const config = readEncodingConfig(options);
    const encoding = readTransactionEncoding(config.encoding);
    const details = readVariant(
      config.transactionDetails,
      ['full', 'signatures', 'none', 'accounts'],
      'full',
    );
    const hasRewards = readBoolean(config.rewards, true);
    const versionMax = readOptionalU64(config.maxSupportedTransactionVersion, 'u8', 255n);
    requireBlock(slot, chain.slotAt(readHistoryCommitment(config)));
    const records = details === 'none' ? [] : chain.ledger.inSlot(slot);
    const each = (encode: (record: TransactionRecord, transaction: Transaction) => Json) =>
      records.map((record) => encode(record, transactionOf(record)));
    return {
      ...blockHead(chain, slot),
      rewards: hasRewards ? [] : undefined,
      signatures: details === 'signatures' ? records.map((record) => record.signature) : undefined,
      transactions:
        details === 'full'
          ? each((record, transaction) => ({
              meta: encodeMeta(transaction, encoding, record.meta, hasRewards),
              transaction: encodeTransaction(transaction, encoding, record.meta),
              version: encodeVersion(transaction, versionMax),
            }))
          : details === 'accounts'
            ? each((record, transaction) => ({
                meta: encodeBalances(record.meta),
                transaction: {
                  accountKeys: encodeKeys(transaction, record.meta),
                  signatures: transaction.signatures,
                },
                version: encodeVersion(transaction, versionMax),
              }))
            : undefined,
    };
  }),
  getBlockTime: method(1, 0, (chain, [slotParam]) => {
    const slot = readU64(slotParam);
    requireBlock(slot, chain.slotAt('confirmed'));
    return chain.blockTimeOf(slot);
  }),
  getBlocks: method(1, 2, (chain, [startParam, endParam, options]) => {
    const start = readU64(startParam);
    const config = readConfig(isJsonObject(endParam) ? endParam : options, 'RpcContextConfig');
    const tip = chain.slotAt(readHistoryCommitment(config));
    requireContextSlot(tip, config);
    const asked = isJsonObject(endParam) ? undefined : readOptionalU64(endParam);
    const end = smaller(asked ?? start + SLOT_RANGE_MAX, tip);
    if (end < start) return [];
    if (end - start > SLOT_RANGE_MAX) throw invalidParams(`Slot range too large; max ${SLOT_RANGE_MAX}`);
    return slotList(start, end);
  }),
  getBlocksWithLimit: method(2, 1, (chain, [startParam, limitParam, options]) => {
    const start = readU64(startParam);
    const limit = readU64(limitParam, 'usize');
    const config = readConfig(options, 'RpcContextConfig');
    const tip = chain.slotAt(readHistoryCommitment(config));
    requireContextSlot(tip, config);
    if (limit > SLOT_RANGE_MAX) throw invalidParams(`Limit too large; max ${SLOT_RANGE_MAX}`);
    return limit === 0n ? [] : slotList(start, smaller(start + limit - 1n, tip));
  }),
};

/** A configuration, or the old form of a bare encoding. */
function readEncodingConfig(options: Json | undefined): JsonObject {
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

function requireBlock(slot: bigint, slotMax: bigint): void {
  if (slot > slotMax) throw new RpcFailure(-32004, `Block not available for slot ${slot}`);
}

function blockHead(chain: Chain, slot: bigint) {
  const parent = slot === 0n ? 0n : slot - 1n;
  return {
    blockHeight: slot,
    blockTime: chain.blockTimeOf(slot),
    blockhash: chain.blockhashOf(slot),
    // Genesis has no parent; Agave names the default hash.
    previousBlockhash: slot === 0n ? '11111111111111111111111111111111' : chain.blockhashOf(parent),
    parentSlot: parent,
  };
}

/** The slots of a range, made as they are written: half a million of them would be heavy to hold. */
function slotList(start: bigint, end: bigint): Json {
  return piecesJson(() => slotPieces(Number(start), Number(end)));
}

function* slotPieces(start: number, end: number): Generator<string> {
  yield '[';
  for (let from = start; from <= end; from += SLOTS_PER_PIECE) {
    const length = Math.min(SLOTS_PER_PIECE, end - from + 1);
    const slots = Array.from({ length }, (_, index) => from + index);
    yield `${from === start ? '' : ','}${slots.join(',')}`;
  }
  yield ']';
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
