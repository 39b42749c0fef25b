import { PROFILES } from '../../shared/config/profiles.ts';
import { type Backend, isLiveNode } from '../upstream/backend.ts';

/** The backends of a history method: live nodes, which hold some days, and archives, which hold the rest. */
export type Tiers = Readonly<{ live: readonly Backend[]; archive: readonly Backend[] }>;

/** The backends of a history method's route by their tier, which their profile and their lanes decide. */
export function tiersOf(backends: readonly Backend[]): Tiers {
  return {
    live: backends.filter(({ config }) => isLiveNode(config)),
    archive: backends.filter(({ config }) => !isLiveNode(config)),
  };
}

/** The first blocks that live nodes still have, as far as they are known. */
export type Floors = Readonly<{
  /** Below it no live node has a block. */
  lowest: number;
  /** From it on every live node has every block. */
  highest: number;
}>;

/** `undefined` while no live node's first block is known. */
export function floorsOf({ live }: Tiers): Floors | undefined {
  const floors = live.flatMap(({ view }) => view.floor ?? []);
  return floors.length === 0 ? undefined : { lowest: Math.min(...floors), highest: Math.max(...floors) };
}

/**
 * The live nodes that go down to where an archive is known to end, or all of them when none is known to. A page that one
 * of the others gives could not be gone on with.
 */
export function meetingLive({ live, archive }: Tiers): readonly Backend[] {
  const top = Math.max(0, ...archive.map(topOf));
  const meeting = live.filter(({ view: { floor } }) => floor !== undefined && floor <= top + 1);
  return meeting.length === 0 ? live : meeting;
}

/** The newest slot that a backend is known to have, whatever its commitment; 0: not known. */
export function topOf({ view: { tip } }: Backend): number {
  return Math.max(...Object.values(tip));
}

/** The newest slot that one of the backends is known to have finalized; 0: not known. */
export function finalizedBy(backends: readonly Backend[]): number {
  return Math.max(0, ...backends.map(({ view }) => view.tip.finalized));
}

/** The archives that are known to have the slot, or all of them when none is. */
export function archivesWith({ archive }: Tiers, slot: number): readonly Backend[] {
  const covering = archive.filter((backend) => mayCover(backend, slot));
  return covering.length === 0 ? archive : covering;
}

/** Whether an archive may have the slot; one that is not probed yet may have any. */
export function mayHave({ archive }: Tiers, slot: number): boolean {
  return archive.some((backend) => mayCover(backend, slot));
}

function mayCover(backend: Backend, slot: number): boolean {
  const top = topOf(backend);
  return slot >= (reachOf(backend) ?? 0) && (top === 0 || slot <= top);
}

/**
 * The first slot that an archive has; `undefined`: not known. A node's own floor says nothing about the BigTable behind
 * it.
 */
export function reachOf({ config, view: { floor, reach } }: Backend): number | undefined {
  if (reach !== undefined) return beginsAt(reach);
  if (floor === undefined) return undefined;
  return PROFILES[config.profile].bigtable ? 0 : beginsAt(floor);
}

/** The first slot of what has a first block: genesis is slot 0 and no block, so from slot 1 on is all. */
export function beginsAt(firstBlock: number): number {
  return firstBlock <= FIRST_SLOT ? 0 : firstBlock;
}

const FIRST_SLOT = 1;
