/*
 * Which slot is in progress, when slots are, and which blockhashes go with them. Slot S is processed while in
 * progress, confirmed when S+1 begins, finalized `rootedLag` slots later. What was there when the run began is
 * finalized. Every slot has a block, so block height and slot are equal.
 */
import type { Address } from '@solana/kit';
import { GENESIS_SLOT } from '../genesis/accounts.ts';
import type { AccountState } from '../protocol/account.ts';
import {
  type Anchor,
  BLOCKHASH_AGE_MAX,
  blockhashOf,
  blockTimeOf,
  createBlockhashQueue,
  isWithinAge,
  nextAnchor,
  slotStartMs,
} from '../protocol/slot.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Accounts } from './accounts.ts';

/** How settled a state is. */
export type Commitment = 'processed' | 'confirmed' | 'finalized';

const SLOT_HASHES_MAX = 512;
// Slots are reserved on disk in steps, so that an empty block costs no write; after a crash the chain goes on
// behind the last reservation.
const RESERVED_SLOTS = 32n;

/** The slots from `start` on; the first one is in progress. */
export function createSlots(ledger: Ledger, start: Start, slotMs: number, rootedLag: bigint) {
  const { seed } = start;
  const anchors: Anchor[] = [...start.anchors];
  const blockhashes = createBlockhashQueue(BLOCKHASH_AGE_MAX + rootedLag + 2n);
  const hashes: Readonly<{ slot: bigint; hash: string }>[] = [];
  let tip = start.slot;
  let reserved = start.slot - 1n;

  function addBlock(slot: bigint): void {
    const hash = blockhashOf(seed, slot);
    blockhashes.add(slot, hash);
    hashes.unshift({ slot, hash });
    if (hashes.length > SLOT_HASHES_MAX) hashes.pop();
  }

  function reserve(): void {
    if (tip <= reserved) return;
    reserved = tip + RESERVED_SLOTS;
    ledger.set('reserved_slot', String(reserved));
  }

  /** Ends the slot in progress and begins the next one. */
  function advance(): void {
    addBlock(tip);
    tip += 1n;
    reserve();
  }

  /** Counts the slots after this one from `nowMs` on: after the machine slept, or its clock was set. */
  function realign(nowMs: number): void {
    const anchor = nextAnchor(anchors, tip + 1n, nowMs, slotMs);
    anchors.push(anchor);
    ledger.addAnchor(anchor);
  }

  function at(commitment: Commitment): bigint {
    const floor = start.slot - 1n;
    if (commitment === 'processed') return tip;
    const slot = commitment === 'confirmed' ? tip - 1n : tip - rootedLag;
    return slot > floor ? slot : floor;
  }

  /** The newest block whose hash a bank knows: a bank in progress knows its parent's, a finished one its own. */
  function newestBlockOf(bank: bigint): bigint {
    return bank === tip ? tip - 1n : bank;
  }

  const oldestHash = start.slot > BigInt(SLOT_HASHES_MAX) ? start.slot - BigInt(SLOT_HASHES_MAX) : 0n;
  for (let slot = oldestHash; slot < start.slot; slot += 1n) addBlock(slot);
  reserve();

  return {
    advance,
    realign,
    at,
    tip: () => tip,
    tipEndMs: () => slotStartMs(anchors, tip + 1n),
    /** Newest first, up to the parent of the slot in progress. */
    hashes: () => hashes,
    blockTimeOf: (slot: bigint) => blockTimeOf(anchors, slot),
    blockhashOf: (slot: bigint) => blockhashOf(seed, slot),
    isRecentAt: (bank: bigint, hash: string) => isWithinAge(blockhashes.slotOf(hash), newestBlockOf(bank)),
    /** The newest blockhash of a bank, and the last block height that accepts it. */
    latestBlockhash: (bank: bigint) => ({
      blockhash: blockhashOf(seed, newestBlockOf(bank)),
      lastValidBlockHeight: bank + BLOCKHASH_AGE_MAX,
    }),
    /** Gives the reserved slots back, so that the next run goes on with the slot after this one. */
    end: () => ledger.set('reserved_slot', String(tip)),
  } as const;
}

/*
 * The beginning of a run: a new chain is made and written down at once, or the one on disk is taken up again with the
 * slot after its last one.
 */

const GENESIS_SLOT_MS = 400;

/** Where a run begins. `seed` is what every blockhash derives from. */
type Start = Readonly<{ seed: Uint8Array; slot: bigint; anchors: readonly Anchor[] }>;

type Deps = Readonly<{
  ledger: Ledger;
  accounts: Accounts;
  slotMs: number;
  nowMs: number;
  random(bytes: number): Uint8Array;
  genesis(): Promise<readonly (readonly [Address, AccountState])[]>;
}>;

/** Opens the chain of a ledger. Throws an Error with a sentence when the ledger holds half a chain. */
export async function openChain(deps: Deps): Promise<Start> {
  const seed = deps.ledger.get('seed');
  return seed === undefined ? beginChain(deps, await deps.genesis()) : resumeChain(deps, seed);
}

function beginChain(
  { ledger, accounts, slotMs, nowMs, random }: Deps,
  genesis: readonly (readonly [Address, AccountState])[],
): Start {
  const seed = random(32);
  const past: Anchor = {
    slot: 0n,
    atMs: nowMs - Number(GENESIS_SLOT) * GENESIS_SLOT_MS,
    slotMs: GENESIS_SLOT_MS,
  };
  const anchors = [past, { slot: GENESIS_SLOT, atMs: nowMs, slotMs }];
  accounts.setAll(genesis);
  accounts.takeChanged();
  ledger.atomically(() => {
    for (const anchor of anchors) ledger.addAnchor(anchor);
    ledger.commit(undefined, [], genesis);
    ledger.set('reserved_slot', String(GENESIS_SLOT));
    ledger.set('seed', Buffer.from(seed).toString('hex'));
  });
  return { seed, slot: GENESIS_SLOT, anchors };
}

function resumeChain({ ledger, accounts, slotMs, nowMs }: Deps, seed: string): Start {
  const reserved = ledger.get('reserved_slot');
  const known = ledger.anchors();
  if (reserved === undefined || known.length === 0) {
    throw new Error("The localnet's database holds no whole chain; remove the file to start a new one.");
  }
  const stored = [...ledger.accounts()];
  accounts.setAll(stored);
  accounts.takeChanged();
  const slot = BigInt(reserved) + 1n;
  const anchor = nextAnchor(known, slot, nowMs, slotMs);
  ledger.addAnchor(anchor);
  return { seed: Buffer.from(seed, 'hex'), slot, anchors: [...known, anchor] };
}
