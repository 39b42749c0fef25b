import type { Chain } from '../chain/chain.ts';
import type { TransactionRecord } from '../chain/record.ts';
import type { Transaction } from '../chain/transaction.ts';
import { encodeBalances, encodeMeta } from '../encode/meta.ts';
import { encodeTransaction, encodeVersion, readTransactionEncoding } from '../encode/transaction.ts';
import { isJsonObject, piecesJson, type Json } from '../json/value.ts';
import { readHistoryCommitment, requireContextSlot } from '../rpc/commitment.ts';
import { value } from '../rpc/context.ts';
import { invalidParams, RpcFailure } from '../rpc/failure.ts';
import type { NamedMethods } from '../rpc/method.ts';
import { readBoolean, readConfig, readOptionalU64, readU64, readVariant } from '../rpc/params.ts';
import { readEncodingConfig, transactionOf } from './history.ts';

const SLOT_RANGE_MAX = 500_000n;
const SLOTS_PER_PIECE = 4_096;

/** Blocks by slot. Every slot since 0 has one; most are empty. */
export const BLOCK_METHODS: NamedMethods = {
  getBlock: {
    required: 1,
    optional: 1,
    answer: (chain, [slotParam, options]) => {
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
      return value({
        ...blockHead(chain, slot),
        rewards: hasRewards ? [] : undefined,
        signatures: details === 'signatures' ? records.map((record) => record.signature) : undefined,
        transactions:
          details === 'full'
            ? each((record, transaction) => ({
                meta: encodeMeta(record.meta, hasRewards),
                transaction: encodeTransaction(transaction, encoding),
                version: encodeVersion(transaction, versionMax),
              }))
            : details === 'accounts'
              ? each((record, transaction) => ({
                  meta: encodeBalances(record.meta),
                  transaction: encodeAccountKeys(record, transaction),
                  version: encodeVersion(transaction, versionMax),
                }))
              : undefined,
      });
    },
  },
  getBlockTime: {
    required: 1,
    optional: 0,
    answer: (chain, [slotParam]) => {
      const slot = readU64(slotParam);
      requireBlock(slot, chain.slotAt('confirmed'));
      return value(chain.blockTimeOf(slot));
    },
  },
  getBlocks: {
    required: 1,
    optional: 2,
    answer: (chain, [startParam, endParam, options]) => {
      const start = readU64(startParam);
      const config = readConfig(isJsonObject(endParam) ? endParam : options, 'RpcContextConfig');
      const tip = chain.slotAt(readHistoryCommitment(config));
      requireContextSlot(tip, config);
      const asked = isJsonObject(endParam) ? undefined : readOptionalU64(endParam);
      const end = smaller(asked ?? start + SLOT_RANGE_MAX, tip);
      if (end < start) return value([]);
      if (end - start > SLOT_RANGE_MAX) throw invalidParams(`Slot range too large; max ${SLOT_RANGE_MAX}`);
      return value(slotList(start, end));
    },
  },
  getBlocksWithLimit: {
    required: 2,
    optional: 1,
    answer: (chain, [startParam, limitParam, options]) => {
      const start = readU64(startParam);
      const limit = readU64(limitParam, 'usize');
      const config = readConfig(options, 'RpcContextConfig');
      const tip = chain.slotAt(readHistoryCommitment(config));
      requireContextSlot(tip, config);
      if (limit > SLOT_RANGE_MAX) throw invalidParams(`Limit too large; max ${SLOT_RANGE_MAX}`);
      return value(limit === 0n ? [] : slotList(start, smaller(start + limit - 1n, tip)));
    },
  },
};

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

function encodeAccountKeys(record: TransactionRecord, transaction: Transaction): Json {
  const { loadedWritable, loadedReadonly, writableKeys } = record.meta;
  const writable = new Set<string>(writableKeys);
  const row = (source: string) => (key: string, index: number) => ({
    pubkey: key,
    signer: source === 'transaction' && index < transaction.signers,
    source,
    writable: writable.has(key),
  });
  return {
    accountKeys: [
      ...transaction.staticKeys.map(row('transaction')),
      ...[...loadedWritable, ...loadedReadonly].map(row('lookupTable')),
    ],
    signatures: transaction.signatures,
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
