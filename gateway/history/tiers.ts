import { type Profile, PROFILES } from '../../shared/config/profiles.ts';
import { type Backend, isLiveNode } from '../upstream/backend.ts';
import type { Gap } from '../upstream/selection.ts';
import { type Passage, readSlots, readWhole, type Tiers } from './request.ts';
import { joined, memberOf, numberIn } from './slices.ts';

/** The backends of a history method's route by their tier, which their profile and their lanes decide. */
export function tiersOf(backends: readonly Backend[]): Tiers {
  return {
    live: backends.filter(({ config }) => isLiveNode(config)),
    archive: backends.filter(({ config }) => !isLiveNode(config)),
  };
}

/** The first blocks that live nodes still have, as far as they are known. */
type Floors = Readonly<{
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
function topOf({ view: { tip } }: Backend): number {
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
function reachOf({ config, view: { floor, reach } }: Backend): number | undefined {
  if (reach !== undefined) return beginsAt(reach);
  if (floor === undefined) return undefined;
  return PROFILES[config.profile].bigtable ? 0 : beginsAt(floor);
}

/** The first slot of what has a first block: genesis is slot 0 and no block, so from slot 1 on is all. */
export function beginsAt(firstBlock: number): number {
  return firstBlock <= FIRST_SLOT ? 0 : firstBlock;
}

const FIRST_SLOT = 1;

/**
 * The lowest slots, above the first that any archive has and below the live nodes, that no call will find anywhere;
 * `undefined` while there are none or not enough is known. Archives of whole epochs end days before the newest slot, and
 * of several each may hold a part: calls for what is left out between them fail, as do lists and pages across it. What
 * an archive has not told yet counts as there. Slots that the chain skipped may be among them.
 */
export function historyGap(backends: readonly Backend[]): Gap | undefined {
  const { live, archive } = tiersOf(backends.filter(({ config }) => config.lanes.includes('archive')));
  const floors = live.flatMap(({ view }) => view.floor ?? []);
  if (floors.length === 0 || archive.length === 0) return undefined;
  const end = Math.max(...floors);
  const archived = archive.map((backend) => ({
    floor: reachOf(backend) ?? 0,
    top: topOf(backend) || Infinity,
  }));
  const spans = [...archived, ...floors.map((floor) => ({ floor, top: Infinity }))];
  let from = Math.min(...archived.map(({ floor }) => floor));
  for (const { floor, top } of spans.toSorted((a, b) => a.floor - b.floor)) {
    if (floor > from) break;
    from = Math.max(from, top + 1);
  }
  const above = spans.map(({ floor }) => floor).filter((floor) => floor > from);
  return from < end ? { from, to: Math.min(end, ...above) - 1 } : undefined;
}

/** Archives of one profile that hold the same: one answers like the other. */
export type Span = Readonly<{
  backends: readonly Backend[];
  profile: Profile;
  /** The first slot that they have; `undefined`: not known. */
  floor: number | undefined;
  /** The newest slot that all of them have; 0: not known. */
  top: number;
}>;

/** The archives by what they have, those that begin last first: several may hold a part of history each. */
export function spansOf({ archive }: Tiers): readonly Span[] {
  const alike = Map.groupBy(archive, (backend) => {
    const floor = reachOf(backend);
    // Nobody knows whether two of them are alike when nobody knows what they have.
    return floor === undefined || topOf(backend) === 0 ? backend : `${backend.config.profile} ${floor}`;
  });
  const spans = [...alike.values()].flatMap((backends): readonly Span[] => {
    const [first] = backends;
    if (first === undefined) return [];
    const top = Math.min(...backends.map(topOf));
    return [{ backends, profile: PROFILES[first.config.profile], floor: reachOf(first), top }];
  });
  return spans.toSorted((a, b) => (b.floor ?? -1) - (a.floor ?? -1));
}

/** Whether they may have the slot; they do have it when they are known (`isKnown`). */
export function mayHold({ floor, top }: Span, slot: number): boolean {
  return (floor ?? 0) <= slot && (top === 0 || slot <= top);
}

/** Whether it is known from where to where they go. */
export function isKnown({ floor, top }: Span): boolean {
  return floor !== undefined && top !== 0;
}

/** How a backend is asked: live nodes without the long-term storage behind them. */
type Of = Readonly<{ backends: readonly Backend[]; localOnly: boolean }>;

/**
 * The first block at or after a slot that some backends have; `Infinity`: none; `undefined`: they do not say. From slot
 * 0 on it is what `getFirstAvailableBlock` would tell, for those that never told.
 */
export async function firstBlockFrom(
  { ask }: Passage,
  { backends, localOnly }: Of,
  slot: number,
): Promise<number | undefined> {
  const params = joined([`[${slot},1]`]);
  const list = await readSlots(
    ask(backends, { method: 'getBlocksWithLimit', params, localOnly, readable: true }),
  );
  if ('reply' in list || list.count > 1) return undefined;
  return list.count === 0 ? Infinity : list.last;
}

/**
 * Whether the chain has no block from slot `from` up to the first one that some backends have, which begin at `floor`:
 * that block names the one before it. What ends at a block and what begins at a block meet so, whatever was skipped
 * between them.
 */
export async function isSkipped(passage: Passage, of: Of, from: number, floor: number): Promise<boolean> {
  const first = await firstBlockFrom(passage, of, floor);
  if (first === undefined || first === Infinity) return false;
  const params = joined([`[${first},${HEAD_ONLY}]`]);
  const { backends, localOnly } = of;
  const reply = await readWhole(
    await passage.ask(backends, { method: 'getBlock', params, localOnly, readable: true }),
  );
  const result = reply.kind === 'whole' ? memberOf(reply.bytes, 'result') : undefined;
  const parent = result === undefined ? undefined : numberIn(memberOf(result, 'parentSlot'));
  return parent !== undefined && parent < from;
}

const HEAD_ONLY = '{"transactionDetails":"none","rewards":false,"maxSupportedTransactionVersion":0}';

/** What one backend has: every block from `floor` to `top`, both included; a live node goes on for ever. */
type Holding = Readonly<{ backend: Backend; tier: 'live' | 'archive'; floor: number; top: number }>;

/** What is known of the backends. Those of which an end is not known are left out: they prove nothing. */
export function knownHoldings({ live, archive }: Tiers): readonly Holding[] {
  return [
    ...live.flatMap((backend): readonly Holding[] => {
      const { floor } = backend.view;
      return floor === undefined ? [] : [{ backend, tier: 'live', floor: beginsAt(floor), top: Infinity }];
    }),
    ...archive.flatMap((backend): readonly Holding[] => {
      const [floor, top] = [reachOf(backend), topOf(backend)];
      return floor === undefined || top === 0 ? [] : [{ backend, tier: 'archive', floor, top }];
    }),
  ];
}

/**
 * The same with what the others show when they are asked: their first block is the first of a list from slot 0 on, and
 * one at or after `upTo` shows that they reach that far. So a backend that never tells its first block stays of use,
 * and one that does not answer this either is not relied upon.
 */
async function toldHoldings(passage: Passage, upTo: number): Promise<readonly Holding[]> {
  const { live, archive } = passage.tiers;
  const liveFloors = await tellFloors(passage);
  const lives = live.flatMap((backend, i): readonly Holding[] => {
    const floor = liveFloors[i];
    return floor === undefined ? [] : [{ backend, tier: 'live', floor: beginsAt(floor), top: Infinity }];
  });
  const liveFrom = lives.length === 0 ? Infinity : Math.max(...lives.map(({ floor }) => floor));
  const reached = Math.min(upTo, liveFrom - 1);
  const archives = archive.map(async (backend): Promise<readonly Holding[]> => {
    const of = { backends: [backend], localOnly: false };
    const [floor, top] = await Promise.all([
      reachOf(backend) ?? firstBlockFrom(passage, of, 0),
      topOf(backend) ||
        (reached === Infinity ? undefined : firstBlockFrom(passage, of, Math.max(0, reached))),
    ]);
    if (floor === undefined || top === undefined || floor === Infinity || top === Infinity) return [];
    return [{ backend, tier: 'archive', floor: beginsAt(floor), top }];
  });
  return [...lives, ...(await Promise.all(archives)).flat()];
}

/** The first block of every live node, asked for where it is not known; `undefined`: it does not say. */
function tellFloors(passage: Passage): Promise<readonly (number | undefined)[]> {
  return Promise.all(
    passage.tiers.live.map(async (backend) => {
      if (backend.view.floor !== undefined) return backend.view.floor;
      const floor = await firstBlockFrom(passage, { backends: [backend], localOnly: true }, 0);
      return floor === Infinity ? undefined : floor;
    }),
  );
}

/** The slot from which on every live node has every block; `undefined`: one of them does not tell. */
export async function tellFloor(passage: Passage): Promise<number | undefined> {
  const floors = await tellFloors(passage);
  const told = floors.filter((floor) => floor !== undefined);
  return told.length < floors.length ? undefined : Math.max(...told);
}

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
function partsOf(holdings: readonly Holding[], start: number, end: number): readonly BlockPart[] {
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
function isWhole(parts: readonly BlockPart[], start: number, end: number): boolean {
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
type Hole = Readonly<{ from: number; above: BlockPart }>;

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

/**
 * Whether the backends together have every slot from the lowest one that any has. Only then does it say something about
 * a cursor that none of them knows it: otherwise it may stand in slots that none of them has.
 */
export async function haveWholeChain(passage: Passage): Promise<boolean> {
  const { live, archive } = passage.tiers;
  const count = live.length + archive.length;
  const known = knownHoldings(passage.tiers);
  const holdings = known.length === count ? known : await toldHoldings(passage, Infinity);
  if (holdings.length < count) return false;
  const start = Math.min(...holdings.map(({ floor }) => floor));
  const floors = holdings.flatMap(({ tier, floor }) => (tier === 'live' ? floor : []));
  const end = Math.max(...(floors.length > 0 ? floors : holdings.map(({ top }) => top)));
  const parts = partsOf(holdings, start, end);
  return parts.at(-1)?.to === end && areSkipped(passage, holesIn(parts, start));
}
