/*
 * The accounts at the tip, with what they were. Everything that changes an account passes `note`, which keeps the
 * image from before, the index by owner, and the list of changes that the next commit to disk has to write.
 */
import type { Address } from '@solana/kit';
import { isSameAccount, type AccountState } from './account.ts';
import { INITIAL_OWNERS } from './known-address.ts';
import type { Svm } from './svm.ts';
import type { Moment, Undo } from './undo.ts';

/** The state as of a moment. Reads are valid until the chain advances, and beyond while held. */
export type View = Readonly<{
  slot: bigint;
  account(address: Address): AccountState | undefined;
  /** Addresses that may be owned by `owner` at the moment; the reader checks the account itself. */
  candidates(owner: Address): Iterable<Address>;
  /** Keeps the view readable until released. */
  hold(): () => void;
}>;

/** The accounts of one chain. */
export type Accounts = ReturnType<typeof createAccounts>;

/** The accounts that a machine holds. */
export function createAccounts(svm: Svm, undo: Undo) {
  const byOwner = new Map<Address, Set<Address>>();
  let changed = new Set<Address>();
  for (const owner of INITIAL_OWNERS) byOwner.set(owner, new Set(svm.addressesOwnedBy(owner)));

  function note(address: Address, before: AccountState | undefined, after: AccountState | undefined): void {
    if (isSameAccount(before, after)) return;
    undo.record(address, before);
    changed.add(address);
    if (before?.owner === after?.owner) return;
    if (before !== undefined) byOwner.get(before.owner)?.delete(address);
    if (after !== undefined) ownedBy(after.owner).add(address);
  }

  function ownedBy(owner: Address): Set<Address> {
    const known = byOwner.get(owner);
    if (known !== undefined) return known;
    const fresh = new Set<Address>();
    byOwner.set(owner, fresh);
    return fresh;
  }

  /** Writes an account outside a transaction: genesis, sysvars, a nonce that advances. */
  function set(address: Address, state: AccountState | undefined): void {
    const before = svm.account(address);
    svm.setAccount(address, state);
    note(address, before, state);
  }

  /** The addresses changed since the last call. */
  function takeChanged(): Set<Address> {
    const taken = changed;
    changed = new Set();
    return taken;
  }

  function viewAt(slot: bigint, moment: Moment): View {
    function account(address: Address): AccountState | undefined {
      const image = undo.imageAt(moment, address);
      return image.kind === 'image' ? image.state : svm.account(address);
    }
    function* candidates(owner: Address): Iterable<Address> {
      const current = byOwner.get(owner) ?? new Set();
      yield* current;
      for (const address of undo.changedSince(moment)) if (!current.has(address)) yield address;
    }
    return { slot, account, candidates, hold: () => undo.hold(moment) };
  }

  return { account: svm.account, set, note, takeChanged, viewAt } as const;
}
