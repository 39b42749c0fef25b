/*
 * What accounts were. Each slot opens a layer; the first change of an account within a layer keeps its image from
 * before. The state at the end of slot F is found by walking the layers after F, oldest first: the first image of
 * the address is it, and without one it is the account at the tip.
 *
 * A scan that is still being written out holds its place, and with it the layers since; they go when it ends.
 */
import type { Address } from '@solana/kit';
import type { AccountState } from './account.ts';

type Layer = Readonly<{ id: number; slot: bigint; images: Map<Address, AccountState | undefined> }>;

/** A moment in the chain's past: all layers from this id on come after it. */
export type Moment = Readonly<{ layerId: number }>;

/** The outcome of looking for an image. */
export type Image =
  Readonly<{ kind: 'image'; state: AccountState | undefined }> | Readonly<{ kind: 'unchanged' }>;

/** The layers of one chain. */
export type Undo = ReturnType<typeof createUndo>;

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
