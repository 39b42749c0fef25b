import type { Backend } from '../upstream/backend.ts';
import { isSkipped } from './first-block.ts';
import { type Holding, knownHoldings, toldHoldings } from './holding.ts';
import type { Passage } from './passage.ts';

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

/**
 * A range by who is known to have it: archives below the live nodes' floor, one after the other, then the live nodes.
 * Where that leaves slots out, the backends whose ends are not known are asked for them first.
 */
export async function findParts(passage: Passage, start: number, end: number): Promise<readonly BlockPart[]> {
  const { live, archive } = passage.tiers;
  const known = knownHoldings(passage.tiers);
  const parts = partsOf(known, start, end);
  if (known.length === live.length + archive.length || isWhole(parts, start, end)) return parts;
  return partsOf(await toldHoldings(passage, end), start, end);
}

/** The parts of a range that somebody has, in order; where one does not begin after the last, nobody has the slots. */
export function partsOf(holdings: readonly Holding[], start: number, end: number): readonly BlockPart[] {
  const parts: BlockPart[] = [];
  for (let from: number | undefined = start; from !== undefined && from <= end;) {
    const part = partAt(holdings, from, end);
    if (part !== undefined) parts.push(part);
    if (part?.to === end) break;
    from = part === undefined ? nextAbove(holdings, from) : part.to + 1;
  }
  return parts;
}

/** Whether parts leave no slot of the range out. */
export function isWhole(parts: readonly BlockPart[], start: number, end: number): boolean {
  const begins = parts.every(({ from }, i) => from === (i === 0 ? start : (parts[i - 1]?.to ?? 0) + 1));
  return begins && parts.at(-1)?.to === end;
}

function partAt(holdings: readonly Holding[], from: number, end: number): BlockPart | undefined {
  const live = holdings.filter(({ tier }) => tier === 'live');
  const floor = live.length === 0 ? Infinity : Math.max(...live.map((each) => each.floor));
  const able = holdings.filter((each) => each.floor <= from && from <= each.top);
  const archives = able.filter(({ tier }) => tier === 'archive');
  if (from < floor && archives.length > 0) {
    const top = Math.min(...archives.map((each) => each.top));
    const to = top >= end ? end : Math.min(top, floor + MARGIN_SLOTS - 1);
    return { tier: 'archive', backends: archives.map(({ backend }) => backend), from, to };
  }
  const lives = able.filter(({ tier }) => tier === 'live');
  return lives.length === 0
    ? undefined
    : { tier: 'live', backends: lives.map(({ backend }) => backend), from, to: end };
}

/** The lowest slot above that anybody has. */
function nextAbove(holdings: readonly Holding[], from: number): number | undefined {
  const floors = holdings.map(({ floor }) => floor).filter((floor) => floor > from);
  return floors.length === 0 ? undefined : Math.min(...floors);
}

/** Slots before a part that no other part has, the first one of them. */
export type Hole = Readonly<{ from: number; above: BlockPart }>;

/** Where the parts of a range leave slots out. Slots after the last part are no hole: nothing is beyond them. */
export function holesIn(parts: readonly BlockPart[], start: number): readonly Hole[] {
  return parts.flatMap((above, i) => {
    const from = i === 0 ? start : (parts[i - 1]?.to ?? start) + 1;
    return from < above.from ? [{ from, above }] : [];
  });
}

/** Whether the chain has no block in a hole. */
export function isHoleSkipped(passage: Passage, { from, above }: Hole): Promise<boolean> {
  const of = { backends: above.backends, localOnly: above.tier === 'live' };
  return isSkipped(passage, of, from, above.from);
}

/** Whether the chain skipped the slots of every hole. */
export async function areSkipped(passage: Passage, holes: readonly Hole[]): Promise<boolean> {
  const skipped = await Promise.all(holes.map((hole) => isHoleSkipped(passage, hole)));
  return skipped.every(Boolean);
}
