import { type Profile, PROFILES } from '../../shared/config/profiles.ts';
import type { Backend } from '../backend/backend.ts';
import { isLiveNode } from '../backend/live-node.ts';

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

export function floorsOf({ live }: Tiers): Floors | undefined {
  const floors = live.flatMap(({ view }) => view.floor ?? []);
  return floors.length === 0 ? undefined : { lowest: Math.min(...floors), highest: Math.max(...floors) };
}

/** The newest slot that one of the backends is known to have, whatever its commitment; 0: not known. */
export function topOf(backends: readonly Backend[]): number {
  return Math.max(0, ...backends.map(({ view: { tip } }) => Math.max(...Object.values(tip))));
}

/** The newest slot that all of the backends are known to have; 0: not known. */
export function commonTop(backends: readonly Backend[]): number {
  return Math.min(...backends.map((backend) => topOf([backend])));
}

/** The newest slot that one of the backends is known to have finalized; 0: not known. */
export function finalizedBy(backends: readonly Backend[]): number {
  return Math.max(0, ...backends.map(({ view }) => view.tip.finalized));
}

/** The archives that are known to have the slot, or all of them when none is. */
export function archivesWith({ archive }: Tiers, slot: number): readonly Backend[] {
  const covering = archive.filter((backend) => covers(backend, slot));
  return covering.length === 0 ? archive : covering;
}

/** Whether an archive may have the slot; one that is not probed yet may have any. */
export function mayHave({ archive }: Tiers, slot: number): boolean {
  return archive.some((backend) => covers(backend, slot));
}

function covers(backend: Backend, slot: number): boolean {
  const top = topOf([backend]);
  return slot >= reachOf(backend) && (top === 0 || slot <= top);
}

/** The first slot it may have. A node's own floor says nothing about the BigTable behind it. */
function reachOf({ config, view }: Backend): number {
  return PROFILES[config.profile].bigtable ? 0 : (view.floor ?? 0);
}

/** Archives of one profile that begin at the same slot: one answers like the other. */
export type Span = Readonly<{ backends: readonly Backend[]; profile: Profile; floor: number; top: number }>;

/** The archives by what they have, those that begin last first: several may hold a part of history each. */
export function spansOf({ archive }: Tiers): readonly Span[] {
  const alike = Map.groupBy(archive, (backend) => `${backend.config.profile} ${reachOf(backend)}`);
  const spans = [...alike.values()].flatMap((backends) => {
    const [first] = backends;
    if (first === undefined) return [];
    const profile = PROFILES[first.config.profile];
    return [{ backends, profile, floor: reachOf(first), top: topOf(backends) }];
  });
  return spans.toSorted((a, b) => b.floor - a.floor);
}
