/*
 * The accounts of the validator as a test validator has them: what pays for it, what it votes with, and what is staked on
 * it. They stay as they are: votes are no transactions here, and there are no rewards.
 */
import { getStakeStateV2Encoder, stakeStateV2 } from '@solana-program/stake';
import type { Address } from '@solana/kit';
import { type AccountState, RENT_EXEMPT_EPOCH } from '../protocol/account.ts';
import { addressBytes, STAKE_PROGRAM, SYSTEM_PROGRAM, VOTE_PROGRAM } from '../protocol/address.ts';
import { identityKeypair, stakeKeypair, voteKeypair } from '../protocol/keypair.ts';

/** The stake of the only validator. */
export const STAKE_LAMPORTS = 1_000_000_000_000n;

const IDENTITY_LAMPORTS = 500_000_000_000n;
const VOTE_LAMPORTS = 1_000_000_000_000_000n;
const VOTE_STATE_BYTES = 3_762;
const STAKE_STATE_BYTES = 200;
const ALL_BPS = 10_000;
/** The epoch of what was staked from the beginning, and of what is not withdrawn. */
const NO_EPOCH = 18446744073709551615n;

type ValidatorAccount = readonly [Address, AccountState];

/** `epoch` is that of the first slot. */
export function validatorAccounts(
  epoch: bigint,
  rentMinimum: (bytes: number) => bigint,
): readonly ValidatorAccount[] {
  const account = (owner: Address, lamports: bigint, data: Uint8Array): AccountState => ({
    lamports,
    data,
    owner,
    executable: false,
    rentEpoch: RENT_EXEMPT_EPOCH,
  });
  const reserve = rentMinimum(STAKE_STATE_BYTES);
  return [
    [identityKeypair().address, account(SYSTEM_PROGRAM, IDENTITY_LAMPORTS, new Uint8Array())],
    [voteKeypair().address, account(VOTE_PROGRAM, VOTE_LAMPORTS, voteState(epoch))],
    [stakeKeypair().address, account(STAKE_PROGRAM, STAKE_LAMPORTS + reserve, stakeState(reserve))],
  ];
}

function stakeState(rentExemptReserve: bigint): Uint8Array {
  const { address: staker } = stakeKeypair();
  const epochs = { activationEpoch: NO_EPOCH, deactivationEpoch: NO_EPOCH };
  const delegation = { voterPubkey: voteKeypair().address, stake: STAKE_LAMPORTS, ...epochs };
  const state = new Uint8Array(STAKE_STATE_BYTES);
  const staked = stakeStateV2('Stake', [
    {
      rentExemptReserve,
      authorized: { staker, withdrawer: staker },
      lockup: { unixTimestamp: 0n, epoch: 0n, custodian: SYSTEM_PROGRAM },
    },
    { delegation: { ...delegation, reserved: Array<number>(8).fill(0) }, creditsObserved: 0n },
    { bits: 0 },
  ]);
  state.set(getStakeStateV2Encoder().encode(staked));
  return state;
}

/** The vote account before its first vote: version 4, which names its voter for the epoch of genesis. */
function voteState(epoch: bigint): Uint8Array {
  const [identity, vote] = [addressBytes(identityKeypair().address), addressBytes(voteKeypair().address)];
  const [node, withdrawer, rewardsCollector, revenueCollector] = [identity, vote, vote, identity];
  const commissions = new Uint8Array(Uint16Array.of(0, ALL_BPS).buffer);
  const rewards = [rewardsCollector, revenueCollector, commissions, u64(0n), Uint8Array.of(0)];
  const noVotes = [u64(0n), Uint8Array.of(0)];
  const voters = [u64(1n), u64(epoch), vote];
  const noCredits = [u64(0n), u64(0n), u64(0n)];
  const state = new Uint8Array(VOTE_STATE_BYTES);
  const version = Uint8Array.of(3, 0, 0, 0);
  state.set(Buffer.concat([version, node, withdrawer, ...rewards, ...noVotes, ...voters, ...noCredits]));
  return state;
}

function u64(value: bigint): Uint8Array {
  return new Uint8Array(BigUint64Array.of(value).buffer);
}
