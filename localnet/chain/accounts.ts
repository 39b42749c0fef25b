/*
 * The accounts at the tip, with what they were. The states are held here as well as in the machine: each read of the
 * machine copies the data, and such copies are only given back when the event loop turns. Everything that changes an
 * account passes `note`, which keeps the image from before, the index by owner, and the list of changes that the next
 * commit to disk has to write.
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

/** Accounts as pairs, in an order in which they can be written: programs last, after their ProgramData. */
export type AccountList = readonly (readonly [Address, AccountState | undefined])[];

/** The accounts of one chain. */
export type Accounts = ReturnType<typeof createAccounts>;

/** The accounts that a machine holds. */
export function createAccounts(svm: Svm, undo: Undo) {
  const states = new Map<Address, AccountState>();
  const byOwner = new Map<Address, Set<Address>>();
  let changed = new Set<Address>();

  function account(address: Address): AccountState | undefined {
    return states.get(address);
  }

  function note(address: Address, after: AccountState | undefined): void {
    const before = states.get(address);
    if (isSameAccount(before, after)) return;
    undo.record(address, before);
    changed.add(address);
    if (before?.owner !== after?.owner && before !== undefined) byOwner.get(before.owner)?.delete(address);
    if (after === undefined) return void states.delete(address);
    states.set(address, after);
    const owned = byOwner.get(after.owner) ?? new Set();
    byOwner.set(after.owner, owned.add(address));
  }

  /** Takes in what the machine made of an account. */
  function refresh(address: Address): void {
    note(address, svm.account(address));
  }

  /** Writes an account outside a transaction: genesis, a nonce that advances. */
  function set(address: Address, state: AccountState | undefined): void {
    svm.setAccount(address, state);
    note(address, state);
  }

  function setAll(list: AccountList): void {
    for (const [address, state] of list) if (state?.executable !== true) set(address, state);
    for (const [address, state] of list) if (state?.executable === true) set(address, state);
  }

  /** What changed since the last call. */
  function takeChanged(): AccountList {
    const taken = [...changed].map((address) => [address, states.get(address)] as const);
    changed = new Set();
    return taken;
  }

  function viewAt(slot: bigint, moment: Moment): View {
    function past(address: Address): AccountState | undefined {
      const image = undo.imageAt(moment, address);
      return image.kind === 'image' ? image.state : states.get(address);
    }
    function* candidates(owner: Address): Iterable<Address> {
      const current = byOwner.get(owner) ?? new Set();
      yield* current;
      for (const address of undo.changedSince(moment)) if (!current.has(address)) yield address;
    }
    return { slot, account: past, candidates, hold: () => undo.hold(moment) };
  }

  for (const owner of INITIAL_OWNERS) svm.addressesOwnedBy(owner).forEach(refresh);
  takeChanged();
  return { account, refresh, set, setAll, takeChanged, viewAt } as const;
}
