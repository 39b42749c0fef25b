/*
 * LiteSVM behind the few verbs that a bank needs. Its own history, blockhash check and faucet are off: the chain
 * keeps 150 blockhashes and a durable history itself. The raw binding is used, not the wrapper, because only it
 * keeps an account's rent epoch.
 */
import { createHash } from 'node:crypto';
import type { Address } from '@solana/kit';
import {
  Account,
  Clock,
  EpochSchedule,
  FailedTransactionMetadata,
  FeatureSet,
  LiteSvm,
  type SimulatedTransactionInfo,
  type TransactionMetadata,
} from 'litesvm/dist/internal';
import type { AccountState } from '../protocol/account.ts';
import { addressBytes, addressOf } from '../protocol/address.ts';
import { transactionErrorFrom, type TransactionErrorJson } from '../protocol/error.ts';
import { epochOf, firstSlotOf, SLOTS_PER_EPOCH } from '../protocol/slot.ts';

/** One inner instruction, in the indexes of its transaction's account keys. */
type InnerInstruction = Readonly<{
  programIdIndex: number;
  accounts: readonly number[];
  data: Uint8Array;
  stackHeight: number;
}>;

/** What running a transaction gave. `innerInstructions` has one list per top-level instruction that ran. */
export type Execution = Readonly<{
  error: TransactionErrorJson | undefined;
  logs: readonly string[];
  unitsConsumed: bigint;
  innerInstructions: readonly (readonly InnerInstruction[])[];
  returnData: Readonly<{ programAddress: Address; data: Uint8Array }> | undefined;
}>;

/** The virtual machine with its accounts, at the slot that its clock was last set to. */
export type Svm = ReturnType<typeof createSvm>;

/** A new machine with the default programs, sysvars and features, and no money. */
export function createSvm() {
  const inner = new LiteSvm();
  inner.setBlockhashCheck(false);
  inner.setTransactionHistory(0n);
  inner.withNativeMints();
  inner.setEpochSchedule(new EpochSchedule(SLOTS_PER_EPOCH, SLOTS_PER_EPOCH, false, 0n, 0n));

  function account(address: Address): AccountState | undefined {
    const found = inner.getAccount(addressBytes(address));
    return found === null ? undefined : stateFrom(found);
  }

  /** Writes an account, or removes it. Throws when an executable account does not hold a valid program. */
  function setAccount(address: Address, state: AccountState | undefined): void {
    inner.setAccount(addressBytes(address), accountFrom(state));
  }

  function addressesOwnedBy(owner: Address): Address[] {
    return inner.getProgramAccounts(addressBytes(owner)).map((found) => addressOf(found.address));
  }

  function setTime(slot: bigint, unixSeconds: bigint, epochStartSeconds: bigint): void {
    const epoch = epochOf(slot);
    inner.setClock(new Clock(slot, epochStartSeconds, epoch, epoch + 1n, unixSeconds));
  }

  function setSlotHashes(hashes: readonly Readonly<{ slot: bigint; hash: string }>[]): void {
    inner.setSlotHashes([...hashes]);
  }

  /** Runs a transaction and keeps what it did. A failed one keeps its fee only. */
  function execute(wire: Uint8Array): Execution {
    return executionFrom(inner.sendVersionedTransaction(wire));
  }

  /** Runs a transaction and keeps nothing. */
  function simulate(wire: Uint8Array, sigVerify: boolean): Simulation {
    inner.setSigverify(sigVerify);
    try {
      const outcome = inner.simulateVersionedTransaction(wire);
      if (outcome instanceof FailedTransactionMetadata)
        return { ...executionFrom(outcome), accounts: () => new Map() };
      return { ...executionFrom(outcome.meta()), accounts: () => postAccounts(outcome) };
    } finally {
      inner.setSigverify(true);
    }
  }

  /** The runtime's feature set: the first four bytes of the hash of its features, as Agave names it. */
  function featureSetId(): number {
    const features = FeatureSet.allEnabled().getActiveFeatures().sort(Buffer.compare);
    return createHash('sha256').update(Buffer.concat(features)).digest().readUInt32LE(0);
  }

  function rentExemptMinimum(bytes: number): bigint {
    return inner.minimumBalanceForRentExemption(BigInt(bytes));
  }

  inner.setClock(new Clock(firstSlotOf(0n), 0n, 0n, 1n, 0n));
  return {
    account,
    setAccount,
    addressesOwnedBy,
    setTime,
    setSlotHashes,
    execute,
    simulate,
    rentExemptMinimum,
    featureSetId,
  } as const;
}

/** An execution whose accounts were not kept; `accounts` copies what they would have become, when it succeeded. */
export type Simulation = Execution & Readonly<{ accounts(): ReadonlyMap<Address, AccountState> }>;

function stateFrom(account: Account): AccountState {
  return {
    lamports: account.lamports(),
    data: account.data(),
    owner: addressOf(account.owner()),
    executable: account.executable(),
    rentEpoch: account.rentEpoch(),
  };
}

function accountFrom(state: AccountState | undefined): Account {
  if (state === undefined) return new Account(0n, new Uint8Array(), new Uint8Array(32), false, 0n);
  return new Account(
    state.lamports,
    state.data,
    addressBytes(state.owner),
    state.executable,
    state.rentEpoch,
  );
}

function postAccounts(info: SimulatedTransactionInfo): Map<Address, AccountState> {
  return new Map(info.postAccounts().map((found) => [addressOf(found.address), stateFrom(found.account())]));
}

function executionFrom(outcome: TransactionMetadata | FailedTransactionMetadata): Execution {
  const failed = outcome instanceof FailedTransactionMetadata;
  const meta = failed ? outcome.meta() : outcome;
  const returned = meta.returnData();
  const data = returned.data();
  return {
    error: failed ? transactionErrorFrom(outcome.err()) : undefined,
    logs: meta.logs(),
    unitsConsumed: meta.computeUnitsConsumed(),
    innerInstructions: meta.innerInstructions().map((list) =>
      list.map((inner) => {
        const instruction = inner.instruction();
        return {
          programIdIndex: instruction.programIdIndex(),
          accounts: [...instruction.accounts()],
          data: instruction.data(),
          stackHeight: inner.stackHeight(),
        };
      }),
    ),
    returnData: data.length === 0 ? undefined : { programAddress: addressOf(returned.programId()), data },
  };
}
