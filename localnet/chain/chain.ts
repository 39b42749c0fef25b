/*
 * The chain: one bank, the slot in progress, which transactions change at once; and the past, which commitments look
 * back to.
 */
import { createHash } from 'node:crypto';
import { type Address, getBase58Decoder } from '@solana/kit';
import type { AccountState } from '../protocol/account.ts';
import { CLOCK_SYSVAR, SLOT_HASHES_SYSVAR } from '../protocol/address.ts';
import { epochOf, firstSlotOf } from '../protocol/slot.ts';
import type { Transaction } from '../protocol/transaction.ts';
import type { Ledger } from '../store/ledger.ts';
import { createAccounts, createUndo, type View } from './accounts.ts';
import { createProcess, simulateAt, type SimulationOptions } from './bank.ts';
import { type Commitment, createSlots, openChain } from './slots.ts';
import { createSvm } from './svm.ts';

/** What a chain is made of. `genesis` gives the accounts of a new chain, in writing order. */
type ChainOptions = Readonly<{
  ledger: Ledger;
  slotMs: number;
  rootedLag: number;
  nowMs: number;
  random(bytes: number): Uint8Array;
  genesis(rentMinimum: (bytes: number) => bigint): Promise<readonly (readonly [Address, AccountState])[]>;
}>;

/** A running chain. */
export type Chain = Awaited<ReturnType<typeof createChain>>;

/** Opens the chain of a ledger, or begins one, with its first slot in progress. */
export async function createChain(options: ChainOptions) {
  const { ledger, slotMs } = options;
  const svm = createSvm();
  const undo = createUndo();
  const accounts = createAccounts(svm, undo);
  const start = await openChain({
    ...options,
    accounts,
    genesis: () => options.genesis(svm.rentExemptMinimum),
  });
  const slots = createSlots(ledger, start, slotMs, BigInt(Math.max(1, options.rootedLag)));
  const process = createProcess({
    svm,
    accounts,
    ledger,
    isRecent: (hash) => slots.isRecentAt(slots.tip(), hash),
  });
  let position = 0;

  function setClock(slot: bigint): void {
    svm.setTime(slot, slots.blockTimeOf(slot), slots.blockTimeOf(firstSlotOf(epochOf(slot))));
  }

  function beginSlot(): void {
    undo.open(slots.tip());
    setClock(slots.tip());
    svm.setSlotHashes(slots.hashes());
    for (const sysvar of [CLOCK_SYSVAR, SLOT_HASHES_SYSVAR]) accounts.refresh(sysvar);
    // Sysvars follow from the slot and are not written down.
    accounts.takeChanged();
    undo.forgetUntil(slots.at('finalized'));
    position = 0;
  }

  /** Ends the slot in progress and begins the next one. */
  function advance(): void {
    slots.advance();
    beginSlot();
  }

  function viewAt(commitment: Commitment): View {
    const slot = slots.at(commitment);
    return accounts.viewAt(slot, undo.endOf(slot));
  }

  /** Runs a transaction in the slot in progress, without a preflight. */
  function send(transaction: Transaction) {
    const outcome = process(transaction, slots.tip(), position);
    if (outcome.kind === 'kept') position += 1;
    return outcome;
  }

  /** Runs a transaction at a view and keeps nothing. */
  function simulate(view: View, transaction: Transaction, how: SimulationOptions) {
    const isProcessed = (signature: string) => (ledger.find(signature)?.slot ?? view.slot + 1n) <= view.slot;
    const isRecent = (hash: string) => slots.isRecentAt(view.slot, hash);
    return simulateAt(
      svm,
      { view, present: accounts.account, setClock, tip: slots.tip(), isRecent, isProcessed },
      transaction,
      how,
    );
  }

  const { end, at: slotAt, ...ofSlots } = slots;

  /** Ends the run; the next one goes on with the slot after this one. */
  function close(): void {
    end();
    ledger.close();
  }

  beginSlot();
  const genesisHash = getBase58Decoder().decode(
    createHash('sha256').update('genesis').update(start.seed).digest(),
  );
  const ofMachine = { featureSetId: svm.featureSetId(), rentExemptMinimum: svm.rentExemptMinimum };
  return {
    ...ofSlots,
    ...ofMachine,
    /** Slots whose past is kept; more than the lag only while a scan is read. */
    heldSlots: undo.layerCount,
    ledger,
    slotMs,
    genesisHash,
    slotAt,
    advance,
    viewAt,
    send,
    simulate,
    close,
  } as const;
}
