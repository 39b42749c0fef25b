/*
 * The accounts at the tip, with what they were. The states are held here as well as in the machine: each read of the
 * machine copies the data, and such copies are only given back when the event loop turns. Everything that changes an
 * account passes `note`, which keeps the image from before, the index by owner, and the list of changes that the next
 * commit to disk has to write.
 *
 * Each slot opens a layer; the first change of an account within a layer keeps its image from before. The state at the
 * end of slot F is found by walking the layers after F, oldest first: the first image of the address is it, and without
 * one it is the account at the tip.
 */
import type { Address } from '@solana/kit';
import { type AccountState, isSameAccount } from '../protocol/account.ts';
import { INITIAL_OWNERS } from '../protocol/address.ts';
import type { Svm } from './svm.ts';

/** The state as of a moment. Reads are valid until the chain advances, and beyond while held. */
export type View = Readonly<{
  slot: bigint;
  account(address: Address): AccountState | undefined;
  /** Addresses that may have an account at the moment, or one of `owner`; the reader checks the account itself. */
  candidates(owner?: Address): Iterable<Address>;
  /** Keeps the view readable until released. */
  hold(): () => void;
}>;

export type AccountList = readonly (readonly [Address, AccountState | undefined])[];

export type Accounts = ReturnType<typeof createAccounts>;

/** All layers from this id on come after a moment. */
type LayerId = number;
type Layer = Readonly<{ id: LayerId; slot: bigint; images: Map<Address, AccountState | undefined> }>;

export function createAccounts(svm: Svm) {
  const states = new Map<Address, AccountState>();
  const byOwner = new Map<Address, Set<Address>>();
  let changed = new Set<Address>();
  const layers: Layer[] = [];
  let nextId: LayerId = 0;
  const holds = new Set<Readonly<{ from: LayerId }>>();

  function note(address: Address, after: AccountState | undefined): void {
    const before = states.get(address);
    if (isSameAccount(before, after)) return;
    const images = layers.at(-1)?.images;
    if (images !== undefined && !images.has(address)) images.set(address, before);
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
    for (const [address, state] of inWritingOrder(list)) set(address, state);
  }

  /** Takes the accounts that changed since the last call. */
  function takeChanged(): AccountList {
    const taken = [...changed].map((address) => [address, states.get(address)] as const);
    changed = new Set();
    return taken;
  }

  function openLayer(slot: bigint): void {
    layers.push({ id: nextId++, slot, images: new Map() });
  }

  /** Forgets the layers that neither a slot after `slot` nor a hold needs. */
  function forgetUntil(slot: bigint): void {
    const heldFrom = Math.min(Infinity, ...Array.from(holds, ({ from }) => from));
    while (layers[0] !== undefined && layers[0].slot <= slot && layers[0].id < heldFrom) layers.shift();
  }

  /** The end of `slot`. */
  function viewAt(slot: bigint): View {
    const from = layers.find((layer) => layer.slot > slot)?.id ?? nextId;

    function* candidates(owner?: Address): Iterable<Address> {
      const present = owner === undefined ? states : (byOwner.get(owner) ?? new Set());
      yield* present.keys();
      const since = layers.filter(({ id }) => id >= from).flatMap(({ images }) => [...images.keys()]);
      for (const address of new Set(since)) if (!present.has(address)) yield address;
    }

    return {
      slot,
      account(address) {
        const layer = layers.find(({ id, images }) => id >= from && images.has(address));
        return layer === undefined ? states.get(address) : layer.images.get(address);
      },
      candidates,
      hold() {
        // What follows a moment at the tip gets a layer of its own.
        if (from === nextId) openLayer(layers.at(-1)?.slot ?? 0n);
        const hold = { from };
        holds.add(hold);
        return () => void holds.delete(hold);
      },
    };
  }

  for (const owner of INITIAL_OWNERS) svm.addressesOwnedBy(owner).forEach(refresh);
  takeChanged();
  return {
    account: (address: Address) => states.get(address),
    refresh,
    set,
    setAll,
    takeChanged,
    openLayer,
    forgetUntil,
    viewAt,
    layerCount: () => layers.length,
  } as const;
}

/** A program is compiled when its account is written, so programs come last, after their ProgramData. */
export function inWritingOrder(list: AccountList): AccountList {
  return list.toSorted(([, one], [, other]) => Number(one?.executable ?? 0) - Number(other?.executable ?? 0));
}
