/*
 * Which slot is in progress, when slots are, and which blockhashes go with them. Slot S is processed while in
 * progress, confirmed when S+1 begins, finalized `rootedLag` slots later. What was there when the run began is
 * finalized. Every slot has a block, so block height and slot are equal.
 *
 * Slots tick evenly from an anchor, and every run of the chain (and every jump of the machine's clock) adds one, so the
 * times of any number of empty blocks cost a row per run.
 */
import type { Address } from '@solana/kit';
import type { FileAccount } from '../genesis/account-files.ts';
import { GENESIS_SLOT } from '../genesis/accounts.ts';
import type { AccountState } from '../protocol/account.ts';
import { BLOCKHASH_AGE_MAX, blockhashOf } from '../protocol/slot.ts';
import type { Anchor, Ledger } from '../store/ledger.ts';
import type { AccountList, Accounts } from './accounts.ts';

export type Commitment = 'processed' | 'confirmed' | 'finalized';

export type Slots = ReturnType<typeof createSlots>;

const SLOT_HASHES_MAX = 512;
// Slots are reserved on disk in steps, so that an empty block costs no write; after a crash the chain goes on
// behind the last reservation.
const RESERVED_SLOTS = 32n;

/** The slots from `start` on; the first one is in progress. */
export function createSlots(ledger: Ledger, start: Start, slotMs: number, rootedLag: bigint) {
  const { seed } = start;
  const anchors: Anchor[] = [...start.anchors];
  /** The newest blocks by their hashes, the oldest first. */
  const blocks = new Map<string, Readonly<{ slot: bigint; hash: string }>>();
  const blocksMax = Math.max(SLOT_HASHES_MAX, Number(BLOCKHASH_AGE_MAX + rootedLag + 2n));
  let tip = start.slot;
  let reserved = start.slot - 1n;

  function addBlock(slot: bigint): void {
    const hash = blockhashOf(seed, slot);
    blocks.set(hash, { slot, hash });
    const [oldest] = blocks.keys();
    if (blocks.size > blocksMax && oldest !== undefined) blocks.delete(oldest);
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
    hashes: () => [...blocks.values()].slice(-SLOT_HASHES_MAX).reverse(),
    /** A slot's block time, in Unix seconds. */
    blockTimeOf: (slot: bigint) => BigInt(Math.floor(slotStartMs(anchors, slot) / 1000)),
    blockhashOf: (slot: bigint) => blockhashOf(seed, slot),
    /** Whether a bank accepts a blockhash. */
    isRecentAt(bank: bigint, hash: string): boolean {
      const [slot, newest] = [blocks.get(hash)?.slot, newestBlockOf(bank)];
      return slot !== undefined && slot <= newest && newest - slot <= BLOCKHASH_AGE_MAX;
    },
    /** The newest blockhash of a bank, and the last block height that accepts it. */
    latestBlockhash: (bank: bigint) => ({
      blockhash: blockhashOf(seed, newestBlockOf(bank)),
      lastValidBlockHeight: bank + BLOCKHASH_AGE_MAX,
    }),
    /** Gives the reserved slots back, so that the next run goes on with the slot after this one. */
    end: () => ledger.set('reserved_slot', String(tip)),
  } as const;
}

/** When a slot begins, in Unix milliseconds. `anchors` ascend by slot and the first is that of slot 0. */
function slotStartMs(anchors: readonly Anchor[], slot: bigint): number {
  const anchor = anchors.findLast((candidate) => candidate.slot <= slot);
  if (anchor === undefined) throw new Error(`no anchor at or before slot ${slot}`);
  return anchor.atMs + Number(slot - anchor.slot) * anchor.slotMs;
}

/** The anchor of slots that begin with `slot` at `nowMs`: never before the slot that came last, so time never goes back. */
function nextAnchor(anchors: readonly Anchor[], slot: bigint, nowMs: number, slotMs: number): Anchor {
  return { slot, atMs: Math.max(nowMs, slotStartMs(anchors, slot - 1n)), slotMs };
}

const GENESIS_SLOT_MS = 400;

/** Where a run begins. `seed` is what every blockhash derives from. */
type Start = Readonly<{ seed: Uint8Array; slot: bigint; anchors: readonly Anchor[] }>;

/** The beginning of a run. `genesis` gives the accounts of a new chain; `files` more, for addresses without a past. */
export type StartOptions = Readonly<{
  slotMs: number;
  nowMs: number;
  random(bytes: number): Uint8Array;
  genesis(rentMinimum: (bytes: number) => bigint): Promise<readonly (readonly [Address, AccountState])[]>;
  files: readonly FileAccount[];
}>;

/**
 * Begins the run of a chain: a new one is made and written down at once, one on disk is taken up again with the slot after
 * its last one. Throws an Error with a sentence when the ledger holds half a chain.
 */
export async function startChain(
  ledger: Ledger,
  accounts: Accounts,
  rentMinimum: (bytes: number) => bigint,
  { slotMs, nowMs, random, genesis, files }: StartOptions,
): Promise<Start> {
  const [stored, reserved, known] = [ledger.get('seed'), ledger.get('reserved_slot'), ledger.anchors()];
  const written = stored === undefined ? await genesis(rentMinimum) : ledger.accounts();
  if (stored !== undefined && (reserved === undefined || known.length === 0))
    throw new Error("The localnet's database holds no whole chain; remove the file to start a new one.");
  accounts.setAll(written);
  const past = new Set(stored === undefined ? [] : written.map(([address]) => address));
  const added = setFiles(
    accounts,
    files.filter(({ address }) => !past.has(address)),
  );
  accounts.takeChanged();
  if (stored !== undefined) {
    ledger.commit(undefined, [], added);
    const slot = BigInt(reserved ?? 0) + 1n;
    const anchor = nextAnchor(known, slot, nowMs, slotMs);
    ledger.addAnchor(anchor);
    return { seed: Buffer.from(stored, 'hex'), slot, anchors: [...known, anchor] };
  }
  const seed = random(32);
  const beganMs = nowMs - Number(GENESIS_SLOT) * GENESIS_SLOT_MS;
  const anchors = [
    { slot: 0n, atMs: beganMs, slotMs: GENESIS_SLOT_MS },
    { slot: GENESIS_SLOT, atMs: nowMs, slotMs },
  ];
  ledger.atomically(() => {
    anchors.forEach(ledger.addAnchor);
    ledger.commit(undefined, [], [...written, ...added]);
    ledger.set('reserved_slot', String(GENESIS_SLOT));
    ledger.set('seed', Buffer.from(seed).toString('hex'));
  });
  return { seed, slot: GENESIS_SLOT, anchors };
}

/** Writes the accounts of files, programs last; throws an Error with a sentence that names the file of one that is no program. */
function setFiles(accounts: Accounts, files: readonly FileAccount[]): AccountList {
  const ordered = files.toSorted(
    (one, other) => Number(one.state.executable) - Number(other.state.executable),
  );
  for (const { file, address, state } of ordered) {
    try {
      accounts.set(address, state);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${file}: account.data: holds no program that can be run (${why})`, { cause });
    }
  }
  return ordered.map(({ address, state }) => [address, state] as const);
}
