/*
 * The chain: one bank, the slot in progress, which transactions change at once; and the past, which commitments look
 * back to. Slot S is processed while in progress, confirmed when S+1 begins, finalized `rootedLag` slots later.
 * What was there when the run began is finalized. Every slot has a block, so block height and slot are equal.
 */
import { createHash } from 'node:crypto';
import { getBase58Decoder, type Address } from '@solana/kit';
import type { Ledger } from '../store/ledger.ts';
import type { AccountState } from './account.ts';
import { createAccounts, type View } from './accounts.ts';
import { blockTimeOf, nextAnchor, slotStartMs, type Anchor } from './block-time.ts';
import { blockhashOf, BLOCKHASH_AGE_MAX, createBlockhashQueue, isWithinAge } from './blockhash.ts';
import { epochOf, firstSlotOf } from './epoch.ts';
import { CLOCK_SYSVAR, SLOT_HASHES_SYSVAR } from './known-address.ts';
import { openChain } from './open.ts';
import { createProcess } from './process.ts';
import { simulateAt, type SimulationOptions } from './simulate.ts';
import { createSvm } from './svm.ts';
import type { Transaction } from './transaction.ts';
import { createUndo } from './undo.ts';

const SLOT_HASHES_MAX = 512;
// Slots are reserved on disk in steps, so that an empty block costs no write; after a crash the chain goes on
// behind the last reservation.
const RESERVED_SLOTS = 32n;

/** How settled a state is. */
export type Commitment = 'processed' | 'confirmed' | 'finalized';

/** What a chain is made of. `genesis` gives the accounts of a new chain, in writing order. */
export type ChainOptions = Readonly<{
  ledger: Ledger;
  slotMs: number;
  rootedLag: number;
  nowMs: number;
  random(bytes: number): Uint8Array;
  genesis(rentMinimum: (bytes: number) => bigint): Promise<(readonly [Address, AccountState])[]>;
}>;

/** A running chain. */
export type Chain = Awaited<ReturnType<typeof createChain>>;

/** Opens the chain of a ledger, or begins one, with its first slot in progress. */
export async function createChain(options: ChainOptions) {
  const { ledger, slotMs } = options;
  const rootedLag = BigInt(Math.max(1, options.rootedLag));
  const svm = createSvm();
  const undo = createUndo();
  const accounts = createAccounts(svm, undo);
  const start = await openChain({
    ...options,
    accounts,
    genesis: () => options.genesis(svm.rentExemptMinimum),
  });
  const anchors: Anchor[] = [...start.anchors];
  const blockhashes = createBlockhashQueue(BLOCKHASH_AGE_MAX + rootedLag + 2n);
  const slotHashes: Readonly<{ slot: bigint; hash: string }>[] = [];
  let tip = start.slot;
  let reserved = start.slot;
  let position = 0;

  const process = createProcess({ svm, accounts, ledger, isRecent: (hash) => isRecentAt(tip, hash) });

  function addBlock(slot: bigint): void {
    const hash = blockhashOf(start.seed, slot);
    blockhashes.add(slot, hash);
    slotHashes.unshift({ slot, hash });
    if (slotHashes.length > SLOT_HASHES_MAX) slotHashes.pop();
  }

  function setClock(slot: bigint): void {
    svm.setTime(slot, blockTimeOf(anchors, slot), blockTimeOf(anchors, firstSlotOf(epochOf(slot))));
  }

  function beginSlot(): void {
    if (tip > reserved || reserved === start.slot) {
      reserved = tip + RESERVED_SLOTS;
      ledger.set('reserved_slot', String(reserved));
    }
    undo.open(tip);
    for (const sysvar of [CLOCK_SYSVAR, SLOT_HASHES_SYSVAR]) undo.record(sysvar, svm.account(sysvar));
    setClock(tip);
    svm.setSlotHashes(slotHashes);
    undo.forgetUntil(slotAt('finalized'));
    position = 0;
  }

  /** Ends the slot in progress and begins the next one. */
  function advance(): void {
    addBlock(tip);
    tip += 1n;
    beginSlot();
  }

  /** Lets the slot in progress end when it is due from `nowMs` on: after the machine slept, or its clock was set. */
  function realign(nowMs: number): void {
    const anchor = nextAnchor(anchors, tip + 1n, nowMs, slotMs);
    anchors.push(anchor);
    ledger.addAnchor(anchor);
  }

  function slotAt(commitment: Commitment): bigint {
    const floor = start.slot - 1n;
    if (commitment === 'processed') return tip;
    const slot = commitment === 'confirmed' ? tip - 1n : tip - rootedLag;
    return slot > floor ? slot : floor;
  }

  /** The newest block whose hash a bank knows: a bank in progress knows its parent's, a finished one its own. */
  function newestBlockOf(bank: bigint): bigint {
    return bank === tip ? tip - 1n : bank;
  }

  function isRecentAt(bank: bigint, hash: string): boolean {
    return isWithinAge(blockhashes.slotOf(hash), newestBlockOf(bank));
  }

  function viewAt(commitment: Commitment): View {
    const slot = slotAt(commitment);
    return accounts.viewAt(slot, undo.endOf(slot));
  }

  function send(transaction: Transaction) {
    const outcome = process(transaction, tip, position);
    if (outcome.kind === 'kept') position += 1;
    return outcome;
  }

  function simulate(view: View, transaction: Transaction, how: SimulationOptions) {
    const isProcessed = (signature: string) => (ledger.find(signature)?.slot ?? view.slot + 1n) <= view.slot;
    const isRecent = (hash: string) => isRecentAt(view.slot, hash);
    return simulateAt(svm, { view, setClock, tip, isRecent, isProcessed }, transaction, how);
  }

  /** Stops keeping the chain; the next run goes on with the slot after this one. */
  function close(): void {
    ledger.set('reserved_slot', String(tip));
    ledger.close();
  }

  const oldestHash = start.slot > BigInt(SLOT_HASHES_MAX) ? start.slot - BigInt(SLOT_HASHES_MAX) : 0n;
  for (let slot = oldestHash; slot < start.slot; slot += 1n) addBlock(slot);
  beginSlot();

  return {
    ledger,
    genesisHash: getBase58Decoder().decode(
      createHash('sha256').update('genesis').update(start.seed).digest(),
    ),
    featureSetId: svm.featureSetId(),
    rentExemptMinimum: svm.rentExemptMinimum,
    advance,
    realign,
    slotAt,
    viewAt,
    isRecentAt,
    send,
    simulate,
    close,
    tipEndMs: () => slotStartMs(anchors, tip + 1n),
    blockTimeOf: (slot: bigint) => blockTimeOf(anchors, slot),
    blockhashOf: (slot: bigint) => blockhashOf(start.seed, slot),
    /** The newest blockhash of a commitment's bank, and the last block height that accepts it. */
    latestBlockhash: (bank: bigint) => ({
      blockhash: blockhashOf(start.seed, newestBlockOf(bank)),
      lastValidBlockHeight: bank + BLOCKHASH_AGE_MAX,
    }),
  } as const;
}
