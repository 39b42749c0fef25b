import type { Address } from '@solana/kit';
import type { Chain } from '../chain/chain.ts';
import { computeBudgetOf, feeOf } from '../chain/fee.ts';
import { nonceAccountOf } from '../chain/nonce.ts';
import { readView } from '../rpc/commitment.ts';
import { inContext, value } from '../rpc/context.ts';
import { invalidParams } from '../rpc/failure.ts';
import type { NamedMethods } from '../rpc/method.ts';
import { readAddress, readConfig, readList, readString } from '../rpc/params.ts';
import { transactionOf } from './history.ts';
import { decode, transactionFrom } from './wire-transaction.ts';

const FEE_SLOTS = 150n;
const FEE_ADDRESSES_MAX = 128;
const MESSAGE_TYPE = 'solana_message::versions::VersionedMessage';

/** What transactions cost. */
export const FEE_METHODS: NamedMethods = {
  getFeeForMessage: {
    required: 1,
    optional: 1,
    answer: (chain, [text, options]) => {
      const message = decode(readString(text), 'base64', MESSAGE_TYPE);
      const config = readConfig(options, 'RpcContextConfig');
      // A message counts its signatures in its header; unsigned ones make it a transaction.
      const signers = message[(message[0] ?? 0) >= 0x80 ? 1 : 0] ?? 0;
      const transaction = transactionFrom(
        Buffer.concat([Uint8Array.of(signers), new Uint8Array(signers * 64), message]),
      );
      const view = readView(chain, config);
      const isKnown =
        chain.isRecentAt(view.slot, transaction.recentBlockhash) ||
        nonceAccountOf(transaction, view.account) !== undefined;
      return inContext(view.slot, isKnown ? feeOf(transaction) : null);
    },
  },
  getRecentPrioritizationFees: {
    required: 0,
    optional: 1,
    answer: (chain, [addresses]) => {
      const listed = addresses === undefined || addresses === null ? [] : readList(addresses);
      if (listed.length > FEE_ADDRESSES_MAX)
        throw invalidParams(`Too many inputs provided; max ${FEE_ADDRESSES_MAX}`);
      const keys = listed.map(readAddress);
      const last = chain.slotAt('confirmed');
      return value(
        Array.from({ length: Number(FEE_SLOTS) }, (_, index) => {
          const slot = last - FEE_SLOTS + 1n + BigInt(index);
          return { prioritizationFee: slotFee(chain, slot, keys), slot };
        }),
      );
    },
  },
};

/** The lowest price per unit that got into a block, and, if higher, into the write-locks of the given accounts. */
function slotFee(chain: Chain, slot: bigint, keys: readonly Address[]): bigint {
  let lowest: bigint | undefined;
  const lowestOf = new Map<Address, bigint>();
  for (const record of chain.ledger.inSlot(slot)) {
    const { price } = computeBudgetOf(transactionOf(record));
    if (lowest === undefined || price < lowest) lowest = price;
    for (const key of record.meta.writableKeys) {
      const known = lowestOf.get(key);
      if (known === undefined || price < known) lowestOf.set(key, price);
    }
  }
  const ofKeys = keys.map((key) => lowestOf.get(key) ?? 0n);
  return [lowest ?? 0n, ...ofKeys].reduce((highest, fee) => (fee > highest ? fee : highest));
}
