import { identityKeypair } from '../genesis/keypair.ts';
import { API_VERSION, value } from '../rpc/context.ts';
import type { NamedMethods } from '../rpc/method.ts';
import { readU64 } from '../rpc/params.ts';
import { SLOTS_PER_EPOCH } from '../chain/epoch.ts';

const ACCOUNT_BYTES_MAX = 10n * 1024n * 1024n;

/** What the node says of itself and of its cluster's constants. */
export const CLUSTER_METHODS: NamedMethods = {
  getHealth: { required: 0, optional: 0, answer: () => value('ok') },
  getVersion: {
    required: 0,
    optional: 0,
    answer: (chain) => value({ 'feature-set': chain.featureSetId, 'solana-core': API_VERSION }),
  },
  getIdentity: { required: 0, optional: 0, answer: () => value({ identity: identityKeypair().address }) },
  getGenesisHash: { required: 0, optional: 0, answer: (chain) => value(chain.genesisHash) },
  getEpochSchedule: {
    required: 0,
    optional: 0,
    answer: () =>
      value({
        firstNormalEpoch: 0,
        firstNormalSlot: 0,
        leaderScheduleSlotOffset: SLOTS_PER_EPOCH,
        slotsPerEpoch: SLOTS_PER_EPOCH,
        warmup: false,
      }),
  },
  getFirstAvailableBlock: { required: 0, optional: 0, answer: () => value(0) },
  minimumLedgerSlot: { required: 0, optional: 0, answer: () => value(0) },
  getMinimumBalanceForRentExemption: {
    required: 1,
    optional: 1,
    answer: (chain, [bytes]) =>
      value(chain.rentExemptMinimum(Number(readU64(bytes, 'usize', ACCOUNT_BYTES_MAX)))),
  },
};
