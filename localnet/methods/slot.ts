import { epochOf, firstSlotOf, SLOTS_PER_EPOCH } from '../chain/epoch.ts';
import { readBankSlot } from '../rpc/commitment.ts';
import { inContext, value } from '../rpc/context.ts';
import type { NamedMethods } from '../rpc/method.ts';
import { readBlockhash, readConfig } from '../rpc/params.ts';

/** Where the chain is, by commitment, and the blockhashes that go with it. */
export const SLOT_METHODS: NamedMethods = {
  getSlot: {
    required: 0,
    optional: 1,
    answer: (chain, [config]) => value(readBankSlot(chain, readConfig(config, 'RpcContextConfig'))),
  },
  // Every slot has a block.
  getBlockHeight: {
    required: 0,
    optional: 1,
    answer: (chain, [config]) => value(readBankSlot(chain, readConfig(config, 'RpcContextConfig'))),
  },
  getTransactionCount: {
    required: 0,
    optional: 1,
    answer: (chain, [config]) =>
      value(chain.ledger.count(readBankSlot(chain, readConfig(config, 'RpcContextConfig')))),
  },
  getEpochInfo: {
    required: 0,
    optional: 1,
    answer: (chain, [config]) => {
      const slot = readBankSlot(chain, readConfig(config, 'RpcContextConfig'));
      const epoch = epochOf(slot);
      return value({
        absoluteSlot: slot,
        blockHeight: slot,
        epoch,
        slotIndex: slot - firstSlotOf(epoch),
        slotsInEpoch: SLOTS_PER_EPOCH,
        transactionCount: chain.ledger.count(slot),
      });
    },
  },
  getLatestBlockhash: {
    required: 0,
    optional: 1,
    answer: (chain, [config]) => {
      const slot = readBankSlot(chain, readConfig(config, 'RpcContextConfig'));
      return inContext(slot, chain.latestBlockhash(slot));
    },
  },
  isBlockhashValid: {
    required: 1,
    optional: 1,
    answer: (chain, [hash, config]) => {
      const blockhash = readBlockhash(hash);
      const slot = readBankSlot(chain, readConfig(config, 'RpcContextConfig'));
      return inContext(slot, chain.isRecentAt(slot, blockhash));
    },
  },
};
