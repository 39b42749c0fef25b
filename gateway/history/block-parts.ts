import type { Backend } from '../backend/backend.ts';
import { archivesWith, commonTop, mayHave, type Tiers } from './tiers.ts';

/** Slots that one tier is asked for, both ends included. */
export type BlockPart = Readonly<{
  tier: 'live' | 'archive';
  backends: readonly Backend[];
  from: number;
  to: number;
}>;

/**
 * How far above its floor a live node's blocks are left to an archive that has them: nodes clean up in steps, between
 * two probes too, and a list does not say what it lacks.
 */
const MARGIN_SLOTS = 1_024;

/** A range as each tier has it: archives below the live nodes' floor, one after the other, then the live nodes. */
export function partsOf(tiers: Tiers, floor: number, start: number, end: number): readonly BlockPart[] {
  const parts: BlockPart[] = [];
  let from = start;
  while (from < floor && from <= end) {
    const backends = archivesWith(tiers, from);
    const to = Math.min(end, lastOf(tiers, backends, floor, from, end));
    parts.push({ tier: 'archive', backends, from, to });
    from = to + 1;
  }
  return from > end ? parts : [...parts, { tier: 'live', backends: tiers.live, from, to: end }];
}

/** The last slot that these archives are asked for. */
function lastOf(tiers: Tiers, backends: readonly Backend[], floor: number, from: number, end: number) {
  const top = commonTop(backends);
  if (top >= end) return end;
  if (top >= floor) return Math.min(top, floor + MARGIN_SLOTS - 1);
  return goesOn(tiers, top, from, floor) ? top : floor - 1;
}

/** Whether another archive goes on below the floor where one ends at `top`. */
export function goesOn(tiers: Tiers, top: number, from: number, floor: number): boolean {
  return top !== 0 && top >= from && top + 1 < floor && mayHave(tiers, top + 1);
}
