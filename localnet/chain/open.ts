/*
 * The beginning of a run: a new chain is made and written down at once, or the one on disk is taken up again with the
 * slot after its last one.
 */
import type { Address } from '@solana/kit';
import { GENESIS_SLOT } from '../genesis/accounts.ts';
import type { Ledger } from '../store/ledger.ts';
import type { AccountState } from './account.ts';
import type { Accounts } from './accounts.ts';
import { nextAnchor, type Anchor } from './block-time.ts';

const GENESIS_SLOT_MS = 400;

/** Where a run begins. `seed` is what every blockhash derives from. */
export type Start = Readonly<{ seed: Uint8Array; slot: bigint; anchors: readonly Anchor[] }>;

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
