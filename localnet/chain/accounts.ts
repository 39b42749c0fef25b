/*
 * The accounts at the tip, with what they were. The states are held here as well as in the machine: each read of the
 * machine copies the data, and such copies are only given back when the event loop turns. Everything that changes an
 * account passes `note`, which keeps the image from before, the index by owner, and the list of changes that the next
 * commit to disk has to write.
 */
import type { Address } from '@solana/kit';
import { type AccountState, isSameAccount } from '../protocol/account.ts';
import { INITIAL_OWNERS } from '../protocol/address.ts';
import type { Svm } from './svm.ts';

/** The state as of a moment. Reads are valid until the chain advances, and beyond while held. */
export type View = Readonly<{
  slot: bigint;
  account(address: Address): AccountState | undefined;
  /** Addresses that may be owned by `owner` at the moment; the reader checks the account itself. */
  candidates(owner: Address): Iterable<Address>;
  /** Every address that may have an account at the moment. */
  addresses(): Iterable<Address>;
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
    function* addresses(): Iterable<Address> {
      yield* states.keys();
      for (const address of undo.changedSince(moment)) if (!states.has(address)) yield address;
    }
    return { slot, account: past, candidates, addresses, hold: () => undo.hold(moment) };
  }

  for (const owner of INITIAL_OWNERS) svm.addressesOwnedBy(owner).forEach(refresh);
  takeChanged();
  return { account, refresh, set, setAll, takeChanged, viewAt } as const;
}

/*
 * What accounts were. Each slot opens a layer; the first change of an account within a layer keeps its image from
 * before. The state at the end of slot F is found by walking the layers after F, oldest first: the first image of
 * the address is it, and without one it is the account at the tip.
 *
 * A scan that is still being written out holds its place, and with it the layers since; they go when it ends.
 */

type Layer = Readonly<{ id: number; slot: bigint; images: Map<Address, AccountState | undefined> }>;

/** A moment in the chain's past: all layers from this id on come after it. */
type Moment = Readonly<{ layerId: number }>;

/** The outcome of looking for an image. */
type Image = Readonly<{ kind: 'image'; state: AccountState | undefined }> | Readonly<{ kind: 'unchanged' }>;

/** The layers of one chain. */
type Undo = ReturnType<typeof createUndo>;

/** Without layers: everything is as it is. */
export function createUndo() {
  const layers: Layer[] = [];
  const holds = new Map<number, number>();
  let nextId = 0;

  function open(slot: bigint): void {
    layers.push({ id: nextId++, slot, images: new Map() });
  }

  /** Keeps the image of an account from before its change. */
  function record(address: Address, before: AccountState | undefined): void {
    const images = layers.at(-1)?.images;
    if (images !== undefined && !images.has(address)) images.set(address, before);
  }

  /** The end of `slot`: before the first layer of a later one. */
  function endOf(slot: bigint): Moment {
    return { layerId: layers.find((layer) => layer.slot > slot)?.id ?? nextId };
  }

  function imageAt(moment: Moment, address: Address): Image {
    for (const layer of layers) {
      if (layer.id < moment.layerId || !layer.images.has(address)) continue;
      return { kind: 'image', state: layer.images.get(address) };
    }
    return { kind: 'unchanged' };
  }

  /** Every address that changed after the moment. */
  function changedSince(moment: Moment): Set<Address> {
    const changed = new Set<Address>();
    for (const layer of layers) {
      if (layer.id >= moment.layerId) for (const address of layer.images.keys()) changed.add(address);
    }
    return changed;
  }

  /** Keeps a moment readable until released. A moment at the tip gets a layer of its own for what follows. */
  function hold(moment: Moment): () => void {
    if (moment.layerId === nextId) open(layers.at(-1)?.slot ?? 0n);
    const { layerId } = moment;
    holds.set(layerId, (holds.get(layerId) ?? 0) + 1);
    let released = false;
    return function release() {
      if (released) return;
      released = true;
      const left = (holds.get(layerId) ?? 1) - 1;
      if (left === 0) holds.delete(layerId);
      else holds.set(layerId, left);
    };
  }

  /** Forgets the layers that neither a slot after `slot` nor a hold needs. */
  function forgetUntil(slot: bigint): void {
    const heldFrom = Math.min(Infinity, ...holds.keys());
    while (layers[0] !== undefined && layers[0].slot <= slot && layers[0].id < heldFrom) layers.shift();
  }

  return {
    open,
    record,
    endOf,
    imageAt,
    changedSince,
    hold,
    forgetUntil,
    layerCount: () => layers.length,
  } as const;
}
