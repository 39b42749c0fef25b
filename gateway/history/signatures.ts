import { PROFILES } from '../../shared/config/profiles.ts';
import type { Backend } from '../upstream/backend.ts';
import type { CallReply } from '../upstream/failover.ts';
import { arrayOf, elementsOf, joined, memberOf, membersOf, numberIn, withConfig } from '../json/slices.ts';
import { isNull, textIn, laterTurn } from '../json/scan.ts';
import {
  type Above,
  type Changes,
  distinctArchives,
  fromGenesis,
  type HistoryRequest,
  isKnown,
  mayHave,
  type Source,
  sourceOf,
  type Tiers,
} from './tiers.ts';

/** One row of a page: its own bytes, and what pages are joined by. */
type SignatureRow = Readonly<{ bytes: Uint8Array; signature: string; slot: number }>;

/** Rows of slots below `slot` only, which a newer range has down to this cursor or, without one, to this slot. */
type Below = Readonly<{ signature: string | undefined; slot: number }>;

/** The rows of a page that the live nodes have; the archives may have older ones. */
type LiveRows = Readonly<{
  rows?: readonly SignatureRow[];
  /** Where the rows of the archives begin; absent: at the caller's own `before`, or at the newest one. */
  below?: Below | undefined;
  /** The live nodes, which have everything newer; absent: they have nothing of the page. */
  above?: Above;
  /** The live nodes did not answer, so they may have other rows. */
  isUnsure?: boolean;
  /** Their error about a cursor that may be older than what they have. */
  refusal?: CallReply | undefined;
}>;

/** `needed`: the newest slot that the archive must have; `undefined`: its rows begin at a cursor of the caller's. */
type Wanted = Readonly<{ below: Below | undefined; limit: number; needed: number | undefined }>;

/**
 * All rows of an archive down to the slot `end`: 0 when no archive has older ones, infinite while its first slot is not
 * known. `isMet`: they end at `until`.
 */
type Rows = Readonly<{
  kind: 'rows';
  rows: readonly SignatureRow[];
  archive: Source;
  end: number;
  isMet?: boolean;
}>;

type Section =
  | Rows
  /** It does not know a cursor of the caller's. */
  | Readonly<{ kind: 'unknown-cursor'; reply: CallReply }>
  /** It could not answer within a bound of pages, or is not known to have the slot that is needed. */
  | Readonly<{ kind: 'failed' | 'unproven' }>;

const FAILED = { kind: 'failed' } as const;
const UNPROVEN = { kind: 'unproven' } as const;

/** Error codes of Agave, the first since 4.0. */
const UNKNOWN_CURSOR = -32020;
const NO_HISTORY = -32011;

/** Rows above those wanted are dropped page by page; a busy address must not take more of them. */
const PAGES_MAX = 10;
const PAGE_ROWS = 1_000;

/** The tiers, with the live nodes that begin where an archive ends; with all when none does. */
function adjacentTiers({ live, archive }: Tiers): Tiers {
  const end = Math.max(0, ...archive.map((backend) => sourceOf(backend).last ?? 0)) + 1;
  const adjacent = live.filter((backend) => (sourceOf(backend).first ?? Infinity) <= end);
  return { live: adjacent.length === 0 ? live : adjacent, archive };
}

/** Agave's bound and default (`rpc.rs`). */
const LIMIT_MAX = 1_000;

/** Well-formed parameters; `undefined`: a node must refuse them. */
function pageParamsOf(params: Uint8Array | undefined) {
  const [address, config, ...more] = elementsOf(params) ?? [];
  if (address === undefined || textIn(address) === undefined || more.length > 0) return undefined;
  const members = config === undefined || isNull(config) ? [] : membersOf(config);
  if (members === undefined) return undefined;
  const valueOf = (wanted: string) =>
    members.findLast(({ name, value }) => name === wanted && !isNull(value))?.value;
  const cursors = [valueOf('before'), valueOf('until')];
  const [before, until] = cursors.map(textIn);
  const limitValue = valueOf('limit');
  const limit = limitValue === undefined ? LIMIT_MAX : (numberIn(limitValue) ?? 0);
  if (limit < 1 || limit > LIMIT_MAX) return undefined;
  if (cursors.some((value) => value && textIn(value) === undefined)) return undefined;
  return { address, limit, before, until, commitment: valueOf('commitment') };
}

type PageParams = Readonly<NonNullable<ReturnType<typeof pageParamsOf>>>;

/** `getSignaturesForAddress`: one page across the tiers; it ends before its limit only where the history does. */
export async function answerSignatures(request: HistoryRequest): Promise<CallReply> {
  const page = pageParamsOf(request.call.params);
  if (page === undefined) return request.sendUnparsed();
  const join = (liveRows: LiveRows) => joinArchives(request, page, liveRows);
  const { before, until, limit } = page;
  request.tiers = adjacentTiers(request.tiers);
  const { live } = request.tiers;
  if (live.length === 0) return join({});
  const { reply, rows, code } = await readPage(request, live, { localOnly: true });
  if (code === NO_HISTORY) return join({});
  if (rows === undefined && code === undefined && before !== undefined) return join({ isUnsure: true });
  const isUnknown = code === UNKNOWN_CURSOR;
  if (rows === undefined ? !isUnknown : rows.length >= limit) return reply;
  // From the highest of them on every live node has every block; infinite when one of them is not known.
  const firsts = await Promise.all(live.map((node) => request.firstSlot(sourceOf(node))));
  const first = Math.max(...firsts.map((each) => each ?? Infinity));
  const isEmpty = rows === undefined || rows.length === 0;
  if (rows !== undefined && until === undefined && (before === undefined || !isEmpty))
    return continueBelow(rows);

  // What a single node knows of its cursors holds for its page; of several, the one that gave the page is not known.
  const known = await liveCursors(live.length === 1 && first === Infinity ? 0 : first);
  if (known === undefined) return request.unavailable();
  if (before !== undefined && known.before === undefined && isEmpty) {
    // There are no rows older than `before` and newer than `until` when `until` is the newer of the two.
    if (known.until !== undefined) return pageOf(request, []);
    return join({ refusal: isUnknown ? reply : undefined });
  }
  const start = known.before === undefined ? undefined : { signature: before, slot: known.before };
  if (rows !== undefined) return known.until === undefined ? continueBelow(rows, start) : reply;
  if (known.until !== undefined || until === undefined) return join({ refusal: reply });
  const { params: given } = request.call;
  const params = given && withConfig(given, (name) => name !== 'until');
  const again = await readPage(request, live, { params, localOnly: true });
  if (again.code === UNKNOWN_CURSOR) return join({ refusal: reply });
  return again.rows !== undefined && again.rows.length < limit
    ? continueBelow(again.rows, start)
    : again.reply;

  /** The archives continue below the oldest row, or `before`, with everything below the live nodes' first slot. */
  async function continueBelow(newer: readonly SignatureRow[], start?: Below): Promise<CallReply> {
    const below = newer.at(-1) ?? start;
    const lowest = Math.min(first, below?.slot ?? Infinity);
    // Without a row and without the nodes' first slot it is not known which slots the page covers.
    if (lowest === Infinity) return request.unavailable();
    return join({ rows: newer, below, above: { backends: live, isLive: true, first: fromGenesis(lowest) } });
  }

  /**
   * The slots of the cursors that the live nodes know, by one `getSignatureStatuses`; `undefined` when they do not answer.
   * A cursor below `first`, the highest first slot of them, counts as unknown: the node that gave the page need not be the
   * one that knows it.
   */
  async function liveCursors(first: number) {
    const cursors = [before, until].filter((cursor) => cursor !== undefined);
    const params = joined([`[${JSON.stringify(cursors)},{"searchTransactionHistory":true}]`]);
    const changes = { method: 'getSignatureStatuses', params, localOnly: true };
    const statuses = elementsOf(memberOf(await request.readResult(live, changes), 'value'));
    if (statuses?.length !== cursors.length) return undefined;
    const slotOf = (cursor = '') => {
      const slot = numberIn(memberOf(statuses[cursors.indexOf(cursor)], 'slot'));
      return slot !== undefined && slot >= first ? slot : undefined;
    };
    return { before: slotOf(before), until: slotOf(until) };
  }
}

/**
 * Adds the rows of the archives that have them: one, or several that hold a part each. The rows of each begin where those
 * of the newer one end. They end before the page's limit only at `until` or at the first slot that any backend has, as a
 * node's pages end at its first block; slots above that which no backend is known to have, and that the chain did not
 * skip, are a failure. So is an archive whose first block is not known, where the page would end on it.
 */
async function joinArchives(
  request: HistoryRequest,
  page: PageParams,
  { isUnsure = false, refusal, ...live }: LiveRows,
): Promise<CallReply> {
  const { address, before, until, limit, commitment } = page;
  let archives = distinctArchives(request.tiers);
  // Without a live node the archive with the newest slot begins; one whose last slot is not known may be that one.
  const newest = Math.max(...archives.map(({ last = Number.MAX_SAFE_INTEGER }) => last));
  const start = before !== undefined || archives.length < 2 ? undefined : newest;
  const rows = [...(live.rows ?? [])];
  let { below, above } = live;
  while (above?.first !== 0) {
    const needed = above === undefined ? start : above.first - 1;
    const section = await newestSection(archives, { below, limit: limit - rows.length, needed });
    if (section.kind === 'unproven') {
      const first = above && (await firstAfterSkipped(archives, above));
      if (above === undefined || first === undefined) return request.unavailable();
      above = { ...above, first };
      continue;
    }
    if (section.kind === 'unknown-cursor' && !isUnsure && (await request.haveWholeChain()))
      return refusal ?? section.reply;
    if (section.kind !== 'rows') return request.unavailable();
    rows.push(...section.rows);
    const { archive, end } = section;
    below = rows.at(-1) ?? below ?? { signature: undefined, slot: end };
    above = { ...archive, first: end };
    archives = archives.filter((each) => each !== archive);
  }
  return rows.length > 0 || !isUnsure ? pageOf(request, rows) : request.unavailable();

  /**
   * No archive is known to have the slot right below `above`. What counts as the first slot of `above` then: the one after
   * the archives' last, when the chain skipped those between; 0 when no archive is older. `undefined`: there is a gap.
   */
  async function firstAfterSkipped(archives: readonly Source[], above: Above): Promise<number | undefined> {
    const needed = above.first - 1;
    const lasts = archives.filter(({ first = 0 }) => first <= needed).map(({ last = 0 }) => last);
    if (lasts.length === 0) return 0;
    const last = Math.max(...lasts);
    // An archive without a known last slot, or with one up to here, did not show that it has the slot.
    if (last === 0 || last >= needed) return undefined;
    return (await request.areSkipped([{ from: last + 1, above }])) ? last + 1 : undefined;
  }

  /** The rows of the first archive that has the needed slot; those whose ends are known come first. */
  async function newestSection(archives: readonly Source[], wanted: Wanted): Promise<Section> {
    const { needed } = wanted;
    const able = needed === undefined ? archives : archives.filter((each) => mayHave(each, needed));
    let missed: Section = UNPROVEN;
    for (const archive of able.toSorted((a, b) => Number(isKnown(b)) - Number(isKnown(a)))) {
      const section = await sectionOf(archive, wanted);
      if (section.kind === 'rows') return section;
      // An older archive may know `before`; below newer rows, those of this one would be missing.
      if (section.kind === 'unknown-cursor' && needed !== undefined) return section;
      if (section.kind === 'failed' || missed.kind === 'unproven') missed = section;
    }
    return missed;
  }

  async function sectionOf(archive: Source, wanted: Wanted): Promise<Section> {
    const { needed } = wanted;
    if (needed !== undefined && archive.last === undefined) {
      const block = await request.firstBlockFrom(archive, needed);
      if (block === undefined) return UNPROVEN;
    }
    const read = await readRows(archive, wanted, until);
    const found = until === undefined ? read : await endAtUntil(read, archive, wanted, until);
    if (found.kind !== 'rows' || found.end === 0) return found;
    const end = await request.firstSlot(archive);
    return end === undefined || end > (needed ?? Infinity) ? UNPROVEN : { ...found, end };
  }

  /**
   * Ends rows at an `until` that they do not show, where an archive knows its transaction: their own may leave it out of
   * its page, refuse it because others have it, or overlook one that is newer than `before`, so that all of its rows are
   * older.
   */
  async function endAtUntil(read: Section, archive: Source, wanted: Wanted, until: string): Promise<Section> {
    const isRefused = read.kind === 'unknown-cursor';
    const found = isRefused ? await readRows(archive, wanted, undefined) : read;
    if (found.kind !== 'rows' || found.isMet) return found;
    const { rows, end } = found;
    const { backends, first = 0, profile } = archive;
    const hasStart = wanted.below !== undefined || before !== undefined;
    const overlooks = PROFILES[profile].pages.untilInclusive && hasStart && wanted.below === undefined;
    const isNewer = (other: Source) =>
      other.backends[0] !== backends[0] && (other.last ?? Infinity) > (rows[0]?.slot ?? first);
    const all = distinctArchives(request.tiers);
    const others = isRefused ? all : [archive, ...all.filter((other) => overlooks && isNewer(other))];
    let missed: Section = isRefused ? read : found;
    for (const source of end === 0 && !isRefused && !overlooks ? [] : others) {
      const cursor = await findCursor(source.backends, until);
      if (cursor === undefined && !isRefused) return FAILED;
      if (cursor === undefined) missed = FAILED;
      if (cursor?.slot === undefined) continue;
      const { slot } = cursor;
      if (!isRefused) {
        const newest = rows[0]?.slot ?? (await request.firstSlot(archive)) ?? Infinity;
        if (source !== archive && slot < newest) break;
        return { ...found, rows: rows.filter((row) => row.slot >= slot), end: 0 };
      }
      if (slot < first) return found;
      // Without a row the archive showed that there is none down to its first slot; without a cursor another may have newer ones.
      const newest = hasStart ? (rows[0]?.slot ?? (archive.first ?? Infinity) - 1) : Infinity;
      return slot > newest ? { ...found, rows: [], end: 0 } : FAILED;
    }
    return missed;
  }

  /** Reads pages of archives that are alike until there are rows enough or no more. */
  async function readRows(
    archive: Source,
    { below: given, limit }: Wanted,
    until: string | undefined,
  ): Promise<Section> {
    const { profile, backends, first = Infinity, last } = archive;
    const { pages } = PROFILES[profile];
    const { live } = request.tiers;
    const rows: SignatureRow[] = [];
    let below = given;
    // Where the next page begins: below a slot, below a row, or at the archive's newest row.
    let beforeSlot = pages.beforeSlot ? below?.slot : undefined;
    let start = below === undefined ? before : below.signature;
    const isBelow = below !== undefined && last !== undefined && last < below.slot;
    if (beforeSlot !== undefined || isBelow || (below !== undefined && last === undefined)) start = undefined;
    // The page has no row that will be dropped.
    let isExact = below === undefined || isBelow || start !== undefined || beforeSlot !== undefined;
    for (let n = 0; n < PAGES_MAX; n++) {
      const pageLimit = isExact ? limit - rows.length : PAGE_ROWS;
      const params = archiveParams({ limit: pageLimit, before: start, beforeSlot, until });
      const { reply, rows: read, code } = await readPage(request, backends, { params });
      beforeSlot = undefined;
      // Old Faithful gives no row for a `before` that is none of the address's.
      const isUnmet = pages.untilInclusive && start === before && read?.length === 0;
      if (isUnmet && start !== undefined) {
        const cursor = await findCursor(below === undefined ? backends : live, start);
        if (cursor === undefined) return FAILED;
        if (cursor.slot === undefined) return { kind: 'unknown-cursor', reply };
        if (cursor.isOwn) return { kind: 'rows', rows, archive, end: first };
        below ??= { signature: start, slot: cursor.slot + 1 };
      } else if (read !== undefined) {
        // Runs of epochs may come in any order.
        const sorted = pages.ordered ? read : read.toSorted((a, b) => b.slot - a.slot);
        const end = sorted.findIndex(({ signature }) => signature === until);
        const seen = new Set(rows.map(({ signature }) => signature));
        const count = rows.length;
        for (const row of end === -1 ? sorted : sorted.slice(0, end)) {
          if (row.slot < (below?.slot ?? Infinity) && !seen.has(row.signature)) rows.push(row);
          seen.add(row.signature);
        }
        const isComplete = end !== -1 || rows.length >= limit;
        if (isComplete || sorted.length < pageLimit) {
          const found = { kind: 'rows', rows: rows.slice(0, limit), archive, isMet: end !== -1 } as const;
          return { ...found, end: isComplete ? 0 : first };
        }
        // A page without a wanted row shows that the archive reaches further up than was known: read long ones from here.
        isExact &&= rows.length > count;
        start = sorted.at(-1)?.signature;
        continue;
      } else if (code !== UNKNOWN_CURSOR) return FAILED;
      else if (start === undefined || start !== below?.signature) return { kind: 'unknown-cursor', reply };
      // The archive does not know the cursor: from its newest row on, what is not below being dropped.
      isExact = false;
      start = undefined;
    }
    return FAILED;
  }

  /** `[ADDRESS,{limit,before?,beforeSlot?,until?,commitment?}]`, the address and commitment in the caller's bytes. */
  function archiveParams(config: object): Uint8Array {
    const rest = commitment === undefined ? [] : [',"commitment":', commitment];
    return joined(['[', address, ',', JSON.stringify(config).slice(0, -1), ...rest, '}]']);
  }

  /** Finds the slot of a cursor by its transaction; `undefined`: they do not answer. `isOwn`: the address is in it. */
  async function findCursor(backends: readonly Backend[], signature: string) {
    const config = '{"encoding":"json","maxSupportedTransactionVersion":255}';
    const params = joined([`[${JSON.stringify(signature)},${config}]`]);
    const result = await request.readResult(backends, { method: 'getTransaction', params });
    if (isNull(result)) return { slot: undefined, isOwn: false };
    const slot = numberIn(memberOf(result, 'slot'));
    if (slot === undefined) return undefined;
    const keys = memberOf(memberOf(memberOf(result, 'transaction'), 'message'), 'accountKeys');
    const lists = [keys, memberOf(memberOf(result, 'meta'), 'loadedAddresses')];
    const own = JSON.stringify(textIn(address));
    return { slot, isOwn: lists.some((list) => list?.includes(own)) };
  }
}

function pageOf(request: HistoryRequest, rows: readonly SignatureRow[]): CallReply {
  return request.reply(arrayOf(rows.map(({ bytes }) => bytes)));
}

/** A page of some backends; without rows the code of their error, if they gave one. */
async function readPage(request: HistoryRequest, backends: readonly Backend[], changes: Changes) {
  const reply = await request.read(backends, changes);
  if (reply.kind !== 'whole') return { reply, rows: undefined, code: undefined };
  return { reply, rows: await rowsIn(memberOf(reply.bytes, 'result')), code: reply.code };
}

/** Rows that are read in one turn of the loop: 2 ms for the longest. */
const SLICE_ROWS = 100;

async function rowsIn(list: Uint8Array | undefined): Promise<readonly SignatureRow[] | undefined> {
  const rows: SignatureRow[] = [];
  const elements = elementsOf(list);
  for (const bytes of elements ?? []) {
    if (rows.length % SLICE_ROWS === SLICE_ROWS - 1) await laterTurn();
    // Signatures and slots are ASCII. Parsed whole, because that is six times as fast as looking for two members.
    const row: unknown = JSON.parse(bytes.toString('latin1'));
    const { signature, slot }: { signature?: unknown; slot?: unknown } = Object(row);
    if (typeof signature !== 'string' || typeof slot !== 'number' || !Number.isSafeInteger(slot))
      return undefined;
    rows.push({ bytes, signature, slot });
  }
  return elements && rows;
}
