import { type ProfileName, PROFILES } from '../../shared/config/profiles.ts';
import { type Backend, isLiveNode } from '../upstream/backend.ts';
import type { Gap } from '../upstream/selection.ts';
import { type HistoryRequest, resultOf, type Tiers } from './request.ts';
import { elementsOf, joined, memberOf, numberIn } from '../json/slices.ts';

/** The backends of a history method's route by their tier, which their profile and their lanes decide. */
export function tiersOf(backends: readonly Backend[]): Tiers {
  return {
    live: backends.filter(({ config }) => isLiveNode(config)),
    archive: backends.filter(({ config }) => !isLiveNode(config)),
  };
}

/** Backends of one tier, any of which gives the same answer. */
type Source = Readonly<{ backends: readonly Backend[]; isLive: boolean }>;

/** Backends that have every block from slot `first` on. */
export type BlocksFrom = Source & Readonly<{ first: number }>;

/** Backends that have every block from slot `first` to slot `last`, both included. A live node's last is `Infinity`. */
export type BlockRange = BlocksFrom & Readonly<{ last: number }>;

/** What probes have shown of the blocks of backends; `undefined`: not known. */
type ProbedRange = Source & Readonly<{ first: number | undefined; last: number | undefined }>;

/** What probes have shown of archives of one profile. */
export type ArchiveRange = ProbedRange & Readonly<{ profile: ProfileName }>;

function liveRanges({ live }: Tiers): readonly ProbedRange[] {
  return live.map((backend) => {
    const { firstLocalBlock: floor } = backend.slots;
    const first = floor === undefined ? undefined : fromGenesis(floor);
    return { backends: [backend], isLive: true, first, last: Infinity };
  });
}

function archiveRanges({ archive }: Tiers): readonly ArchiveRange[] {
  return archive.map((backend) => {
    const { profile } = backend.config;
    const { firstLocalBlock: floor, firstBlock: reach, tip } = backend.slots;
    // A node's own first block is not that of the BigTable behind it.
    const local = PROFILES[profile].bigtable && floor !== undefined ? 0 : floor;
    const firstBlock = reach ?? local;
    const first = firstBlock === undefined ? undefined : fromGenesis(firstBlock);
    const last = Math.max(...Object.values(tip)) || undefined;
    return { backends: [backend], isLive: false, profile, first, last };
  });
}

const FIRST_SLOT = 1;

/** Slot 0 is genesis and has no block, so a backend that has slot 1 has everything. */
export function fromGenesis(firstBlock: number): number {
  return firstBlock <= FIRST_SLOT ? 0 : firstBlock;
}

/** The ranges of archives, those that begin last first. Archives of one profile that begin alike are one range. */
export function distinctArchives(tiers: Tiers): readonly ArchiveRange[] {
  const alike = Map.groupBy(archiveRanges(tiers), (range) =>
    range.first === undefined || range.last === undefined ? range : `${range.profile} ${range.first}`,
  );
  const ranges = [...alike.values()].map((group) =>
    group.reduce((all, { backends, last = Infinity }) => ({
      ...all,
      backends: [...all.backends, ...backends],
      last: Math.min(all.last ?? Infinity, last),
    })),
  );
  return ranges.toSorted((a, b) => (b.first ?? -1) - (a.first ?? -1));
}

/** Whether backends may have the slot: they do not when it is outside what is known of them. */
export function mayHave({ first = 0, last = Infinity }: ProbedRange, slot: number): boolean {
  return first <= slot && slot <= last;
}

/** Whether both ends are known. */
export function isKnown(range: ProbedRange): range is ProbedRange & BlockRange {
  return range.first !== undefined && range.last !== undefined;
}

/** The archives that may have a slot; one that is not probed yet may have any. */
export function archivesWith(tiers: Tiers, slot: number): readonly Backend[] {
  return archiveRanges(tiers).flatMap((range) => (mayHave(range, slot) ? range.backends : []));
}

/** The archives that are known to have every slot from `start` to `end`. */
export function archivesWithAll(tiers: Tiers, start: number, end: number): readonly Backend[] {
  const hasAll = (range: ArchiveRange) => isKnown(range) && mayHave(range, start) && mayHave(range, end);
  return archiveRanges(tiers).flatMap((range) => (hasAll(range) ? range.backends : []));
}

/** The first slots of the live nodes, as far as they are known. */
export function knownFirsts(tiers: Tiers): readonly number[] {
  return liveRanges(tiers).flatMap(({ first }) => first ?? []);
}

/**
 * The tiers with those live nodes only that begin where an archive is known to end, or with all when none does: archives
 * could not continue the page of another one.
 */
export function adjacentTiers({ live, archive }: Tiers): Tiers {
  const end = Math.max(0, ...archiveRanges({ live, archive }).map(({ last = 0 }) => last)) + 1;
  const adjacent = live.filter(
    ({ slots: { firstLocalBlock: floor } }) => floor !== undefined && floor <= end,
  );
  return { live: adjacent.length === 0 ? live : adjacent, archive };
}

/**
 * The lowest slots, above the first of any archive and below the live nodes, that no backend has; `undefined`: none, or
 * not enough is known. Archives of whole epochs end days before the newest slot, and each of several may hold a part.
 * An end of an archive that is not known counts as beyond the gap. The chain may have skipped some of the slots.
 */
export function historyGap(backends: readonly Backend[]): Gap | undefined {
  const tiers = tiersOf(backends.filter(({ config }) => config.lanes.includes('archive')));
  const probed = archiveRanges(tiers);
  const archives = probed.map((range) => ({
    ...range,
    first: range.first ?? 0,
    last: range.last ?? Infinity,
  }));
  const start = Math.min(...archives.map(({ first }) => first));
  const end = Math.max(...knownFirsts(tiers));
  // Without an archive or a known live node these are infinite.
  if (start >= end) return undefined;
  const [gap] = gapsIn(divide([...archives, ...liveRanges(tiers).filter(isKnown)], start, end), start);
  return gap === undefined ? undefined : { from: gap.from, to: gap.above.first - 1 };
}

/** The first block of backends at or after a slot; `undefined`: none, or they do not say. */
export async function firstBlockFrom(
  { read }: HistoryRequest,
  { backends, isLive }: Source,
  slot: number,
): Promise<number | undefined> {
  const params = joined([`[${slot},1]`]);
  const list = resultOf(await read(backends, { method: 'getBlocksWithLimit', params, localOnly: isLive }));
  const [block, ...more] = (list === undefined ? undefined : elementsOf(list)) ?? [];
  return more.length > 0 ? undefined : numberIn(block);
}

/** The first slot of backends: found by a list of blocks where the probes did not find it. `undefined`: not known. */
export async function firstSlot(request: HistoryRequest, range: ProbedRange): Promise<number | undefined> {
  const first = range.first ?? (await firstBlockFrom(request, range, 0));
  return first === undefined ? undefined : fromGenesis(first);
}

/** The slot from which on every live node has every block; `undefined`: not known of one of them. */
export async function firstLiveSlot(request: HistoryRequest): Promise<number | undefined> {
  const firsts = await Promise.all(liveRanges(request.tiers).map((range) => firstSlot(request, range)));
  return firsts.every((first) => first !== undefined) ? Math.max(...firsts) : undefined;
}

/**
 * Whether the chain has no block from slot `from` up to the first block of backends, which names its parent. So ranges
 * that do not touch may still leave no block out.
 */
async function isSkipped(request: HistoryRequest, { from, above }: SlotGap): Promise<boolean> {
  const { backends, isLive, first } = above;
  const block = await firstBlockFrom(request, above, first);
  if (block === undefined) return false;
  const params = joined([`[${block},${HEAD_ONLY}]`]);
  const head = resultOf(await request.read(backends, { method: 'getBlock', params, localOnly: isLive }));
  const parent = head === undefined ? undefined : numberIn(memberOf(head, 'parentSlot'));
  return parent !== undefined && parent < from;
}

const HEAD_ONLY = '{"transactionDetails":"none","rewards":false,"maxSupportedTransactionVersion":0}';

/** Slots that no backend is known to have, from `from` up to where the next range begins. */
export type SlotGap = Readonly<{ from: number; above: BlocksFrom }>;

/** Whether the chain skipped every slot of the gaps. */
export async function areSkipped(request: HistoryRequest, gaps: readonly SlotGap[]): Promise<boolean> {
  const skipped = await Promise.all(gaps.map((gap) => isSkipped(request, gap)));
  return skipped.every(Boolean);
}

/**
 * The ranges of all backends. With `upTo`, those whose ends the probes did not find are called for them: a block at or
 * after `upTo` shows that an archive reaches that far. A backend that does not answer this either is left out.
 */
async function rangesOf(request: HistoryRequest, upTo?: number): Promise<readonly BlockRange[]> {
  const lives = liveRanges(request.tiers);
  const archives: readonly ProbedRange[] = archiveRanges(request.tiers);
  if (upTo === undefined) return [...lives, ...archives].filter(isKnown);
  const found = await Promise.all(
    lives.map(async (range) => ({ ...range, first: await firstSlot(request, range) })),
  );
  const known = found.filter(isKnown);
  const needed = Math.min(upTo, highestFirst(known) - 1);
  const rest = archives.map(async (range) => {
    const [first, last] = await Promise.all([
      firstSlot(request, range),
      range.last ?? (needed === Infinity ? undefined : firstBlockFrom(request, range, Math.max(0, needed))),
    ]);
    return { ...range, first, last };
  });
  return [...known, ...(await Promise.all(rest)).filter(isKnown)];
}

/** From there on every live node has every block; `Infinity`: there is no live node. */
function highestFirst(ranges: readonly BlockRange[]): number {
  const firsts = ranges.flatMap(({ isLive, first }) => (isLive ? first : []));
  return firsts.length === 0 ? Infinity : Math.max(...firsts);
}

/** Slots from `start` to `end` by the backends that are known to have them (`divide`). */
export async function rangesBetween(
  request: HistoryRequest,
  start: number,
  end: number,
): Promise<readonly BlockRange[]> {
  const { live, archive } = request.tiers;
  const known = await rangesOf(request);
  const ranges = divide(known, start, end);
  const isWhole = ranges.at(-1)?.last === end && gapsIn(ranges, start).length === 0;
  if (isWhole || known.length === live.length + archive.length) return ranges;
  return divide(await rangesOf(request, end), start, end);
}

/**
 * Whether the backends together have every slot from the lowest one that any has. Only then does it mean something that
 * none of them knows a cursor: otherwise it may be in slots that none of them has.
 */
export async function haveWholeChain(request: HistoryRequest): Promise<boolean> {
  const { live, archive } = request.tiers;
  const count = live.length + archive.length;
  let known = await rangesOf(request);
  if (known.length < count) known = await rangesOf(request, Infinity);
  if (known.length < count) return false;
  const start = Math.min(...known.map(({ first }) => first));
  const end = live.length > 0 ? highestFirst(known) : Math.max(...known.map(({ last }) => last));
  const ranges = divide(known, start, end);
  return ranges.at(-1)?.last === end && areSkipped(request, gapsIn(ranges, start));
}

/**
 * Nodes clean up in steps, also between two probes, and a list does not say what it lacks: up to so many slots above its
 * first one, a live node is not called for blocks that an archive has.
 */
const MARGIN_SLOTS = 1_024;

/**
 * Divides the slots from `start` to `end` among the backends that have them, in order: archives below the first slot of
 * the live nodes, then the live nodes. Where a range does not begin after the one before it, no backend has the slots.
 */
function divide(ranges: readonly BlockRange[], start: number, end: number): readonly BlockRange[] {
  const divided: BlockRange[] = [];
  let first = start;
  while (first <= end) {
    const range = rangeAt(ranges, first, end);
    if (range !== undefined) divided.push(range);
    // Without a range: the lowest slot above that any backend has.
    const above = ranges.flatMap((each) => (each.first > first ? each.first : []));
    first = range === undefined ? Math.min(...above) : range.last + 1;
    if (first === Infinity) break;
  }
  return divided;
}

function rangeAt(ranges: readonly BlockRange[], first: number, end: number): BlockRange | undefined {
  const liveFirst = highestFirst(ranges);
  const able = ranges.filter((range) => mayHave(range, first));
  const archives = able.filter(({ isLive }) => !isLive);
  if (first < liveFirst && archives.length > 0) {
    const top = Math.min(...archives.map(({ last }) => last));
    const last = top >= end ? end : Math.min(top, liveFirst + MARGIN_SLOTS - 1);
    return { backends: archives.flatMap(({ backends }) => backends), isLive: false, first, last };
  }
  const lives = able.filter(({ isLive }) => isLive);
  if (lives.length === 0) return undefined;
  return { backends: lives.flatMap(({ backends }) => backends), isLive: true, first, last: end };
}

/** The gaps before and between ranges. Slots above the last range are no gap, because no backend is known beyond them. */
export function gapsIn(ranges: readonly BlockRange[], start: number): readonly SlotGap[] {
  return ranges.flatMap((above, i) => {
    const from = i === 0 ? start : (ranges[i - 1]?.last ?? start) + 1;
    return from < above.first ? [{ from, above }] : [];
  });
}
