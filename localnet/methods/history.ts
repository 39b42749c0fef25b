import type { Chain } from '../chain/chain.ts';
import {
  encodeBalances,
  encodeKeys,
  encodeMeta,
  encodeStatus,
  encodeTransaction,
  encodeVersion,
  readTransactionEncoding,
  type TransactionEncoding,
} from '../encode/transaction.ts';
import { integersJson, isJsonObject, type Json, type JsonObject } from '../json/value.ts';
import { SYSTEM_PROGRAM } from '../protocol/address.ts';
import { readTransaction, type Transaction } from '../protocol/transaction.ts';
import { invalidParams, isAbsent, RpcFailure } from '../request/params.ts';
import * as read from '../request/params.ts';
import type { Place, TransactionRecord } from '../store/ledger.ts';
import { inContext, method, type NamedMethods } from './method.ts';

const STATUSES_MAX = 256;
// The status cache of a node: finalized slots whose signatures it still knows.
const STATUS_CACHE_SLOTS = 300n;
const SIGNATURES_MAX = 1_000n;
const START_OF_CHAIN: Place = { slot: -1n, position: 0 };
const SLOT_RANGE_MAX = 500_000n;
const DETAILS = ['full', 'signatures', 'none', 'accounts'] as const;

/** Transactions by signature and by address, and blocks by slot. Every slot since 0 has a block; most are empty. */
export const HISTORY_METHODS: NamedMethods = {
  getTransaction: method(1, 1, (chain, [signature, options]) => {
    const name = read.signature(signature);
    const config = readEncodingConfig(options);
    const form = readForm(config);
    const slotMax = read.historySlot(chain, { commitment: config.commitment });
    const record = chain.ledger.find(name);
    if (record === undefined || record.slot > slotMax) return null;
    return {
      blockTime: chain.blockTimeOf(record.slot),
      slot: record.slot,
      ...encodeFull(record, form, true),
    };
  }),
  getSignatureStatuses: method(1, 1, (chain, [signatures, options]) => {
    const names = read.inputs(signatures, STATUSES_MAX, read.signature);
    const config = read.config(options, 'RpcSignatureStatusConfig', 'searchTransactionHistory');
    const isSearched = read.boolean(config.searchTransactionHistory, false);
    const statuses = names.map((name) => statusOf(chain, name, isSearched));
    return inContext(chain.slotAt('processed'), statuses);
  }),
  getSignaturesForAddress: method(1, 1, (chain, [address, options]) => {
    const key = read.address(address);
    const config = read.config(options, 'RpcSignaturesForAddressConfig');
    const limit = read.optionalU64(config.limit, 'usize') ?? SIGNATURES_MAX;
    if (limit < 1n || limit > SIGNATURES_MAX) throw invalidParams(`Invalid limit; max ${SIGNATURES_MAX}`);
    const tip: Place = { slot: read.historySlot(chain, config) + 1n, position: 0 };
    const cursor = readCursor(chain, config.before) ?? tip;
    const before = cursor.slot < tip.slot ? cursor : tip;
    const after = readCursor(chain, config.until) ?? START_OF_CHAIN;
    return chain.ledger.naming(key, before, after, Number(limit)).map((record) => ({
      blockTime: chain.blockTimeOf(record.slot),
      confirmationStatus: statusName(chain, record.slot),
      err: record.meta.error,
      memo: record.meta.memo,
      signature: record.signature,
      slot: record.slot,
      transactionIndex: record.position,
    }));
  }),
  getBlock: method(1, 1, (chain, [slotParam, options]) => {
    const slot = read.u64(slotParam);
    const config = readEncodingConfig(options);
    const form = readForm(config);
    const details = read.variant(config.transactionDetails, DETAILS, 'full');
    const hasRewards = read.boolean(config.rewards, true);
    requireBlock(slot, read.historySlot(chain, { commitment: config.commitment }));
    const records = details === 'none' ? [] : chain.ledger.inSlot(slot);
    const parent = slot === 0n ? 0n : slot - 1n;
    const block = {
      blockHeight: slot,
      blockTime: chain.blockTimeOf(slot),
      blockhash: chain.blockhashOf(slot),
      // Genesis has no parent; Agave names the default hash.
      previousBlockhash: slot === 0n ? SYSTEM_PROGRAM : chain.blockhashOf(parent),
      parentSlot: parent,
      rewards: hasRewards ? [] : undefined,
    };
    switch (details) {
      case 'none':
        return block;
      case 'signatures':
        return { ...block, signatures: records.map(({ signature }) => signature) };
      case 'full':
        return { ...block, transactions: records.map((record) => encodeFull(record, form, hasRewards)) };
      case 'accounts':
        return { ...block, transactions: records.map((record) => encodeAccounts(record, form, hasRewards)) };
    }
  }),
  getBlockTime: method(1, 0, (chain, [slotParam]) => {
    const slot = read.u64(slotParam);
    requireBlock(slot, chain.slotAt('confirmed'));
    return chain.blockTimeOf(slot);
  }),
  getBlocks: method(1, 2, (chain, [startParam, endParam, options]) => {
    const start = read.u64(startParam);
    const hasEnd = !isJsonObject(endParam);
    const config = read.config(hasEnd ? options : endParam, 'RpcContextConfig');
    const tip = read.historySlot(chain, config);
    const end = smaller((hasEnd ? read.optionalU64(endParam) : undefined) ?? start + SLOT_RANGE_MAX, tip);
    if (end - start > SLOT_RANGE_MAX) throw invalidParams(`Slot range too large; max ${SLOT_RANGE_MAX}`);
    return integersJson(Number(start), Number(end));
  }),
  getBlocksWithLimit: method(2, 1, (chain, [startParam, limitParam, options]) => {
    const start = read.u64(startParam);
    const limit = read.u64(limitParam, 'usize');
    const tip = read.historySlot(chain, read.config(options, 'RpcContextConfig'));
    if (limit > SLOT_RANGE_MAX) throw invalidParams(`Limit too large; max ${SLOT_RANGE_MAX}`);
    return integersJson(Number(start), Number(smaller(start + limit - 1n, tip)));
  }),
};

/** A configuration, or the old form of a bare encoding. */
function readEncodingConfig(options: Json | undefined): JsonObject {
  return typeof options === 'string' ? { encoding: options } : read.config(options, 'RpcTransactionConfig');
}

type Form = Readonly<{ encoding: TransactionEncoding; versionMax: bigint | undefined }>;

function readForm(config: JsonObject): Form {
  return {
    encoding: readTransactionEncoding(config.encoding),
    versionMax: read.optionalU64(config.maxSupportedTransactionVersion, 'u8', 255n),
  };
}

function encodeFull(record: TransactionRecord, { encoding, versionMax }: Form, hasRewards: boolean) {
  const transaction = transactionOf(record);
  return {
    meta: encodeMeta(transaction, encoding, record.meta, hasRewards),
    transaction: encodeTransaction(transaction, encoding, record.meta),
    version: encodeVersion(transaction, versionMax),
  };
}

function encodeAccounts(record: TransactionRecord, { versionMax }: Form, hasRewards: boolean): Json {
  const transaction = transactionOf(record);
  const { signatures } = transaction;
  return {
    meta: { ...encodeBalances(record.meta), rewards: hasRewards ? [] : undefined },
    transaction: { accountKeys: encodeKeys(transaction, record.meta), signatures },
    version: encodeVersion(transaction, versionMax),
  };
}

/** The transaction of a record, which was read once before it was kept. */
export function transactionOf(record: TransactionRecord): Transaction {
  const read = readTransaction(record.wire);
  if (read.kind === 'read') return read.transaction;
  throw new Error(`the kept transaction ${record.signature} cannot be read: ${read.reason}`);
}

function readCursor(chain: Chain, signature: Json | undefined): Place | undefined {
  if (isAbsent(signature)) return undefined;
  const name = read.signature(signature);
  const record = chain.ledger.find(name);
  if (record === undefined) throw new RpcFailure(-32020, `Transaction ${name} not found`);
  return record;
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

function requireBlock(slot: bigint, slotMax: bigint): void {
  if (slot > slotMax) throw new RpcFailure(-32004, `Block not available for slot ${slot}`);
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
