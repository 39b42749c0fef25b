/*
 * LiteSVM behind the few verbs that a bank needs. Its own history, blockhash check and faucet are off: the chain
 * keeps 150 blockhashes and a durable history itself. The raw binding is used, not the wrapper, because only it
 * keeps an account's rent epoch.
 */
import { createHash } from 'node:crypto';
import { type Address, getBase58Decoder } from '@solana/kit';
import {
  Account,
  Clock,
  EpochSchedule,
  FailedTransactionMetadata,
  FeatureSet,
  LiteSvm,
  type TransactionMetadata,
} from 'litesvm/dist/internal';
import type { AccountState } from '../protocol/account.ts';
import { addressBytes, addressOf, MEMO_PROGRAM, SYSVAR_OWNER } from '../protocol/address.ts';
import { debugText } from '../protocol/debug-text.ts';
import { transactionErrorFrom } from '../protocol/error.ts';
import { epochOf, SLOTS_PER_EPOCH } from '../protocol/slot.ts';

/** An execution whose accounts were not kept; `accounts` copies what they would have become, when it succeeded. */
export type Simulation = ReturnType<typeof executionFrom> &
  Readonly<{ accounts(): ReadonlyMap<Address, AccountState> }>;

/** The virtual machine with its accounts, at the slot that its clock was last set to. */
export type Svm = ReturnType<typeof createSvm>;

/** A new machine with the default programs, sysvars and features, and no money. */
export function createSvm() {
  const inner = new LiteSvm();
  inner.setBlockhashCheck(false);
  inner.setTransactionHistory(0n);
  inner.withNativeMints();
  inner.setEpochSchedule(new EpochSchedule(SLOTS_PER_EPOCH, SLOTS_PER_EPOCH, false, 0n, 0n));
  setTime(0n, 0n, 0n);

  function setTime(slot: bigint, unixSeconds: bigint, epochStartSeconds: bigint): void {
    const epoch = epochOf(slot);
    inner.setClock(new Clock(slot, epochStartSeconds, epoch, epoch + 1n, unixSeconds));
  }

  const rentMinimum = (bytes: number) => inner.minimumBalanceForRentExemption(BigInt(bytes));

  return {
    setTime,
    setSlotHashes: (hashes: Readonly<{ slot: bigint; hash: string }>[]) => inner.setSlotHashes(hashes),
    account(address: Address): AccountState | undefined {
      const found = inner.getAccount(addressBytes(address));
      if (found === null) return undefined;
      const state = stateFrom(found);
      // LiteSVM gives a sysvar one lamport whenever it writes it; clusters keep them free of rent.
      return state.owner === SYSVAR_OWNER ? { ...state, lamports: rentMinimum(state.data.length) } : state;
    },
    /** Writes an account, or removes it. Throws when an executable account does not hold a valid program. */
    setAccount(address: Address, state: AccountState | undefined): void {
      inner.setAccount(addressBytes(address), accountFrom(state));
    },
    addressesOwnedBy: (owner: Address): Address[] =>
      inner.getProgramAccounts(addressBytes(owner)).map((found) => addressOf(found.address)),
    /** Runs a transaction and keeps what it did. A failed one keeps its fee only. */
    execute(wire: Uint8Array, sigVerify: boolean) {
      inner.setSigverify(sigVerify);
      try {
        return executionFrom(inner.sendVersionedTransaction(wire));
      } finally {
        inner.setSigverify(true);
      }
    },
    simulate(wire: Uint8Array, sigVerify: boolean): Simulation {
      inner.setSigverify(sigVerify);
      try {
        const outcome = inner.simulateVersionedTransaction(wire);
        if (outcome instanceof FailedTransactionMetadata)
          return { ...executionFrom(outcome), accounts: () => new Map() };
        const after = () =>
          outcome
            .postAccounts()
            .map((found) => [addressOf(found.address), stateFrom(found.account())] as const);
        return { ...executionFrom(outcome.meta()), accounts: () => new Map(after()) };
      } finally {
        inner.setSigverify(true);
      }
    },
    rentExemptMinimum: rentMinimum,
    /** The runtime's feature set: the first four bytes of the hash of its features, as Agave names it. */
    featureSetId(): number {
      const features = FeatureSet.allEnabled().getActiveFeatures().sort(Buffer.compare);
      return createHash('sha256').update(Buffer.concat(features)).digest().readUInt32LE(0);
    },
  } as const;
}

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
  const { lamports, data, owner, executable, rentEpoch } = state;
  return new Account(lamports, data, addressBytes(owner), executable, rentEpoch);
}

const base58 = getBase58Decoder();

/** Reads the result of running a transaction; inner instructions and return data in Agave's form. */
function executionFrom(outcome: TransactionMetadata | FailedTransactionMetadata) {
  const failed = outcome instanceof FailedTransactionMetadata;
  const meta = failed ? outcome.meta() : outcome;
  const returned = meta.returnData();
  const data = Buffer.from(returned.data());
  return {
    error: failed ? transactionErrorFrom(outcome.err()) : undefined,
    logs: memoLogs(meta.logs()),
    unitsConsumed: meta.computeUnitsConsumed(),
    innerInstructions: meta.innerInstructions().flatMap((list, index) => {
      const instructions = list.map((inner) => {
        const instruction = inner.instruction();
        return {
          programIdIndex: instruction.programIdIndex(),
          accounts: [...instruction.accounts()],
          data: base58.decode(instruction.data()),
          stackHeight: inner.stackHeight(),
        };
      });
      return instructions.length === 0 ? [] : [{ index, instructions }];
    }),
    returnData:
      data.length === 0
        ? null
        : { programId: addressOf(returned.programId()), data: [data.toString('base64'), 'base64'] },
  };
}

const LOG = 'Program log: ';
const MEMO_LENGTH = /^Memo \(len \d+\)$/;

/**
 * The logs with what release 3 of the memo program prints, which is the one at its address on clusters. LiteSVM has release
 * 4 there, which does the same and prints it in more lines: `Signed by:` before the signers, `Memo (len 2)` before the text.
 */
function memoLogs(logs: readonly string[]): readonly string[] {
  let printed: 'others' | 'memo' | 'signers' | 'length' = 'others';
  return logs.flatMap((line) => {
    if (line.startsWith(`Program ${MEMO_PROGRAM} `)) printed = line.includes(' invoke [') ? 'memo' : 'others';
    if (printed === 'others' || !line.startsWith(LOG)) return [line];
    const text = line.slice(LOG.length);
    if (printed === 'length') return [`${LOG}Memo (len ${Buffer.byteLength(text)}): ${debugText(text)}`];
    if (text === 'Signed by:') printed = 'signers';
    else if (MEMO_LENGTH.test(text)) printed = 'length';
    else return [`${LOG}Signed by ${text}`];
    return [];
  });
}
