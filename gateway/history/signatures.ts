import { unreachable } from '../../shared/brand.ts';
import type { Reply } from '../upstream/forward.ts';
import {
  type ArchiveFailure,
  type ArchiveRows,
  type Below,
  type CursorRead,
  type PageParams,
  pageParamsOf,
  readArchive,
  readCursor,
  readPage,
  type Row,
  type WantedRows,
  withoutUntil,
} from './page.ts';
import { type HistoryRequest, resultOf, resultReply, unavailable } from './request.ts';
import { elementsOf, joined, listed, memberOf, numberIn } from '../json/slices.ts';
import {
  adjacentTiers,
  type ArchiveRange,
  areSkipped,
  type BlocksFrom,
  distinctArchives,
  firstBlockFrom,
  firstLiveSlot,
  firstSlot,
  fromGenesis,
  haveWholeChain,
  isKnown,
  mayHave,
} from './tiers.ts';

/** The rows of a page that the live nodes have; the archives may have older ones. */
type LiveRows = Readonly<{
  kind: 'rows';
  rows: readonly Row[];
  /** Where the rows of the archives begin. */
  below: Below | undefined;
  /** The live nodes, which have everything newer; `undefined`: they have nothing of the page. */
  above: BlocksFrom | undefined;
  /** The live nodes answered, so they have no other row. */
  isSure: boolean;
  /** Their error about a cursor that may be older than what they have. */
  refusal: Reply | undefined;
}>;

type LivePage = LiveRows | Readonly<{ kind: 'answer'; reply: Reply }>;

/**
 * `getSignaturesForAddress`: one page across the tiers, newest first, the rows spliced in their own bytes.
 * A page ends before its limit only where the history ends or at `until`; anything else is an error.
 */
export async function answerSignatures(whole: HistoryRequest): Promise<Reply> {
  const request = { ...whole, tiers: adjacentTiers(whole.tiers) };
  const page = pageParamsOf(request.call.params);
  if (page === undefined) return request.sendUnparsed();
  const live = await readLive(request, page);
  if (live.kind === 'answer') return live.reply;
  const all = await readArchives(request, page, live);
  switch (all.kind) {
    case 'rows':
      return all.rows.length > 0 || live.isSure ? pageReply(request, all.rows) : unavailable(request);
    case 'unknown-cursor':
      return live.isSure && (await haveWholeChain(request))
        ? (live.refusal ?? all.reply)
        : unavailable(request);
    case 'failed':
      return unavailable(request);
    default:
      return unreachable(all);
  }
}

function pageReply(request: HistoryRequest, rows: readonly Row[]): Reply {
  return resultReply(['[', ...listed(rows.map(({ bytes }) => bytes)), ']'], request);
}

async function readLive(request: HistoryRequest, page: PageParams): Promise<LivePage> {
  const { live } = request.tiers;
  const { before, until, limit } = page;
  if (live.length === 0) return older();
  const read = await readPage(request, live, { localOnly: true });
  if (read.kind === 'no-history') return older();
  if (read.kind === 'none' && before !== undefined) return { ...older(), isSure: false };
  const isUnknown = read.kind === 'unknown-cursor';
  if (!isUnknown && (read.kind !== 'rows' || read.rows.length >= limit)) return answer(read.reply);
  const rows = read.kind === 'rows' ? read.rows : [];
  const first = await firstLiveSlot(request);
  if (!isUnknown && until === undefined && (before === undefined || rows.length > 0))
    return newest(request, rows, first);

  // What a single node knows of its cursors holds for its page; of several, the one that gave the page is not known.
  const known = await liveCursors(request, page, first ?? (live.length === 1 ? 0 : Infinity));
  if (known === undefined) return answer(unavailable(request));
  if (before !== undefined && known.before === undefined && rows.length === 0) {
    // There are no rows older than `before` and newer than `until` when `until` is the newer of the two.
    return known.until === undefined
      ? older(isUnknown ? read.reply : undefined)
      : answer(pageReply(request, []));
  }
  const beforeSlot = known.before === undefined ? undefined : { signature: before, slot: known.before };
  if (!isUnknown)
    return known.until === undefined ? newest(request, rows, first, beforeSlot) : answer(read.reply);
  if (known.until !== undefined || until === undefined) return older(read.reply);
  const again = await readPage(request, live, { params: withoutUntil(page), localOnly: true });
  if (again.kind === 'unknown-cursor') return older(read.reply);
  return again.kind === 'rows' && again.rows.length < limit
    ? newest(request, again.rows, first, beforeSlot)
    : answer(again.reply);
}

function answer(reply: Reply): LivePage {
  return { kind: 'answer', reply };
}

/** All rows are older than what the live nodes have. */
function older(refusal?: Reply): LiveRows {
  return { kind: 'rows', rows: [], below: undefined, above: undefined, isSure: true, refusal };
}

/**
 * The archives continue below the oldest row, or below `before` when the live nodes have its slot and nothing older; in
 * both cases with everything below the live nodes' first slot.
 */
function newest(
  request: HistoryRequest,
  rows: readonly Row[],
  firstOfLive: number | undefined,
  before?: Below,
): LivePage {
  const below = rows.at(-1) ?? before;
  const first = fromGenesis(Math.min(firstOfLive ?? Infinity, below?.slot ?? Infinity));
  // Without a row and without the nodes' first slot it is not known which slots the page covers.
  if (first === Infinity) return answer(unavailable(request));
  const above = { backends: request.tiers.live, isLive: true, first };
  return { kind: 'rows', rows, below, above, isSure: true, refusal: undefined };
}

/**
 * The slots of the cursors that the live nodes know, by one `getSignatureStatuses`; `undefined` when they do not answer.
 * A cursor below `first`, the highest first slot of them, counts as unknown: the node that gave the page need not be the
 * one that knows it.
 */
async function liveCursors(
  { read, tiers }: HistoryRequest,
  { before, until }: PageParams,
  first: number,
): Promise<Readonly<{ before: number | undefined; until: number | undefined }> | undefined> {
  const cursors = [before, until].filter((cursor) => cursor !== undefined);
  const params = joined([`[${JSON.stringify(cursors)},{"searchTransactionHistory":true}]`]);
  const result = resultOf(
    await read(tiers.live, { method: 'getSignatureStatuses', params, localOnly: true }),
  );
  const value = result && memberOf(result, 'value');
  const statuses = value && elementsOf(value);
  if (statuses?.length !== cursors.length) return undefined;
  const slots = statuses.map((status) => {
    const slot = numberIn(memberOf(status, 'slot'));
    return slot !== undefined && slot >= first ? slot : undefined;
  });
  return {
    before: before === undefined ? undefined : slots[0],
    until: until === undefined ? undefined : slots.at(-1),
  };
}

/**
 * Adds the rows of the archives that have them: one, or several that hold a part each. The rows of each begin where those
 * of the newer one end. They end before the page's limit only at `until` or at the first slot that any backend has, as a
 * node's pages end at its first block; slots above that which no backend is known to have, and that the chain did not
 * skip, are a failure. So is an archive whose first block is not known, where the page would end on it.
 */
async function readArchives(
  request: HistoryRequest,
  page: PageParams,
  live: LiveRows,
): Promise<ArchiveFailure | Readonly<{ kind: 'rows'; rows: readonly Row[] }>> {
  let ranges = distinctArchives(request.tiers);
  const rows = [...live.rows];
  let { below, above } = live;
  while (above?.first !== 0) {
    const needed = neededSlot(ranges, page, above);
    const found = await newestRows(request, ranges, { page, below, limit: page.limit - rows.length }, needed);
    if (found.kind === 'unproven') {
      const first = above && (await firstAfterSkipped(request, ranges, above));
      if (above === undefined || first === undefined) return { kind: 'failed' };
      above = { ...above, first };
      continue;
    }
    if (found.kind !== 'rows') return found;
    rows.push(...found.rows);
    const { end } = found;
    if (end === undefined) break;
    below = rows.at(-1) ?? below ?? { signature: undefined, slot: end.first };
    above = end;
    // Its first slot need not be found again.
    ranges = ranges.map((range) =>
      range.backends === end.backends ? { ...range, first: end.first } : range,
    );
  }
  return { kind: 'rows', rows };
}

/** The newest slot that the next archive must have; `undefined`: its rows begin at a cursor of the caller's. */
function neededSlot(
  ranges: readonly ArchiveRange[],
  { before }: PageParams,
  above: BlocksFrom | undefined,
): number | undefined {
  if (above !== undefined) return above.first - 1;
  if (before !== undefined || ranges.length < 2) return undefined;
  // The archive with the newest slot begins; one whose last slot is not known may be that one.
  return Math.max(...ranges.map(({ last = Infinity }) => last));
}

/**
 * No archive is known to have the slot right below `above`. What counts as the first slot of `above` then: the one after
 * the archives' last, when the chain skipped those between; 0 when no archive is older. `undefined`: there is a gap.
 */
async function firstAfterSkipped(
  request: HistoryRequest,
  ranges: readonly ArchiveRange[],
  above: BlocksFrom,
): Promise<number | undefined> {
  const needed = above.first - 1;
  const older = ranges.filter(({ first }) => first === undefined || first <= needed);
  if (older.length === 0) return 0;
  const last = Math.max(...older.map((range) => range.last ?? 0));
  // An archive without a known last slot, or with one up to here, did not show that it has the slot.
  if (last === 0 || last >= needed) return undefined;
  return (await areSkipped(request, [{ from: last + 1, above }])) ? last + 1 : undefined;
}

/** What one archive has of a page. */
type Section =
  | ArchiveFailure
  /** `end`: the rows go down to its first slot, and the page goes on below; `undefined`: the page is complete. */
  | { readonly kind: 'rows'; readonly rows: readonly Row[]; readonly end: BlocksFrom | undefined }
  /** It is not known to have the slot that is needed. */
  | { readonly kind: 'unproven' };

/** The rows of the first archive that has the needed slot; those whose ends are known come first. */
async function newestRows(
  request: HistoryRequest,
  ranges: readonly ArchiveRange[],
  wanted: WantedRows,
  needed: number | undefined,
): Promise<Section> {
  const able = needed === undefined ? ranges : ranges.filter((range) => mayHave(range, needed));
  let unknown: Section | undefined;
  let failed: Section | undefined;
  for (const range of [...able.filter(isKnown), ...able.filter((each) => !isKnown(each))]) {
    const section = await sectionOf(request, range, wanted, needed);
    if (section.kind === 'rows') return section;
    if (section.kind === 'failed') failed = section;
    if (section.kind === 'unknown-cursor') {
      // An older archive may know `before`; below newer rows, those of this one would be missing.
      if (needed !== undefined) return section;
      unknown ??= section;
    }
  }
  return failed ?? unknown ?? { kind: 'unproven' };
}

async function sectionOf(
  request: HistoryRequest,
  range: ArchiveRange,
  wanted: WantedRows,
  needed: number | undefined,
): Promise<Section> {
  const { page, limit } = wanted;
  const found = await readPastUntil(request, range, wanted);
  if (found.kind !== 'rows') return found;
  const { rows } = found;
  if (needed !== undefined && range.last === undefined && !found.overlaps) {
    const block = needed === Infinity ? undefined : await firstBlockFrom(request, range, needed);
    if (block === undefined) return { kind: 'unproven' };
  }
  if (found.ended || rows.length === limit) return { kind: 'rows', rows, end: undefined };
  if (page.until !== undefined && range.first !== 0) {
    // An archive may leave `until` out of its page, or ignore one that it does not know: its page does not show which.
    const until = await readCursor(request, range.backends, page.until, page.address);
    if (until.kind === 'unavailable') return { kind: 'failed' };
    if (until.kind === 'known') return { kind: 'rows', rows, end: undefined };
  }
  const first = await firstSlot(request, range);
  if (first === undefined || first > (needed ?? Infinity)) return { kind: 'unproven' };
  return { kind: 'rows', rows, end: { backends: range.backends, isLive: false, first } };
}

/** The rows of one archive, which is not called with an `until` that is older than what it has. */
async function readPastUntil(
  request: HistoryRequest,
  range: ArchiveRange,
  wanted: WantedRows,
): Promise<ArchiveRows> {
  const found = await readArchive(request, range, wanted);
  const { page, below } = wanted;
  if (found.kind !== 'unknown-cursor' || page.until === undefined) return found;
  // Without a cursor the rows begin at the newest one, which is newer than any `until`.
  const start: CursorRead =
    below === undefined && page.before !== undefined
      ? await readCursor(request, range.backends, page.before, page.address)
      : { kind: 'known', slot: below?.slot ?? Infinity, isOwn: true };
  const until = start.kind === 'known' ? await readUntil(request, page.until, page.address) : start;
  if (until.kind === 'unknown') return found;
  if (start.kind === 'known' && until.kind === 'known') {
    if (until.slot < (range.first ?? 0))
      return readArchive(request, range, { ...wanted, page: { ...page, until: undefined } });
    if (until.slot > start.slot) return { kind: 'rows', rows: [], ended: true, overlaps: true };
  }
  return { kind: 'failed' };
}

/** Finds `until` in any of the archives. */
async function readUntil(request: HistoryRequest, until: string, address: Uint8Array): Promise<CursorRead> {
  let unanswered: CursorRead | undefined;
  for (const { backends } of distinctArchives(request.tiers)) {
    const found = await readCursor(request, backends, until, address);
    if (found.kind === 'known') return found;
    if (found.kind === 'unavailable') unanswered = found;
  }
  return unanswered ?? { kind: 'unknown' };
}
