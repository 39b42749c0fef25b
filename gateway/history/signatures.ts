import { type Profile, PROFILES } from '../../shared/config/profiles.ts';
import type { Backend } from '../upstream/backend.ts';
import { failureOf } from '../upstream/failure.ts';
import type { Reply } from '../upstream/forward.ts';
import {
  elementsOf,
  isNull,
  joined,
  listed,
  type Member,
  memberOf,
  membersOf,
  numberIn,
  textIn,
} from './slices.ts';
import {
  type Above,
  areSkipped,
  type Changes,
  distinctArchives,
  firstBlockFrom,
  firstSlot,
  haveWholeChain,
  type HistoryRequest,
  isKnown,
  mayHave,
  readResult,
  resultReply,
  sendUnparsed,
  type Source,
  sourceOf,
  unavailable,
} from './tiers.ts';

/** Well-formed parameters of `getSignaturesForAddress`. */
type PageParams = Readonly<{
  address: Uint8Array;
  limit: number;
  before: string | undefined;
  until: string | undefined;
  commitment: Uint8Array | undefined;
  /** The config's members in the caller's bytes. */
  members: readonly Member[];
}>;

/** One row of a page: its own bytes, and what pages are joined by. */
type Row = Readonly<{ bytes: Uint8Array; signature: string; slot: number }>;

/** Rows of slots below `slot` only, which a newer range has down to this cursor or, without one, to this slot. */
type Below = Readonly<{ signature: string | undefined; slot: number }>;

/** The rows of a page that the live nodes have; the archives may have older ones. */
type LiveRows = Readonly<{
  kind: 'rows';
  rows: readonly Row[];
  /** Where the rows of the archives begin; `undefined`: at the caller's own `before`, or at the newest one. */
  below: Below | undefined;
  /** The live nodes, which have everything newer; `undefined`: they have nothing of the page. */
  above: Above | undefined;
  /** The live nodes answered, so they have no other row. */
  isSure: boolean;
  /** Their error about a cursor that may be older than what they have. */
  refusal: Reply | undefined;
}>;

/**
 * `getSignaturesForAddress`: one page across the tiers, newest first, the rows spliced in their own bytes.
 * A page ends before its limit only where the history ends or at `until`; anything else is an error.
 */
export async function answerSignatures(whole: HistoryRequest): Promise<Reply> {
  const page = pageParamsOf(whole.call.params);
  if (page === undefined) return sendUnparsed(whole);
  const request = withAdjacentNodes(whole);
  const live = await readLive(request, page);
  if (live.kind === 'answer') return live.reply;
  const all = await readArchives(request, page, live);
  if (all.kind === 'rows' && (all.rows.length > 0 || live.isSure)) return pageReply(request, all.rows);
  if (all.kind === 'unknown-cursor' && live.isSure && (await haveWholeChain(request)))
    return live.refusal ?? all.reply;
  return unavailable(request);
}

/**
 * The request with those live nodes only that begin where an archive is known to end, or with all when none does: archives
 * could not continue the page of another one.
 */
function withAdjacentNodes(request: HistoryRequest): HistoryRequest {
  const { live, archive } = request.tiers;
  const end = Math.max(0, ...archive.map((backend) => sourceOf(backend).last ?? 0)) + 1;
  const adjacent = live.filter((backend) => (sourceOf(backend).first ?? Infinity) <= end);
  return adjacent.length === 0 ? request : { ...request, tiers: { live: adjacent, archive } };
}

function pageReply(request: HistoryRequest, rows: readonly Row[]): Reply {
  return resultReply(['[', ...listed(rows.map(({ bytes }) => bytes)), ']'], request);
}

/** Agave's bound and default (`rpc.rs`). */
const LIMIT_MAX = 1_000;

/** `undefined`: a node must refuse the parameters. */
function pageParamsOf(params: Uint8Array | undefined): PageParams | undefined {
  const [address, config, ...more] = elementsOf(params ?? new Uint8Array()) ?? [];
  if (address === undefined || textIn(address) === undefined || more.length > 0) return undefined;
  const members = config === undefined || isNull(config) ? [] : membersOf(config);
  if (members === undefined) return undefined;
  const valueOf = (wanted: string) =>
    members.findLast(({ name, value }) => name === wanted && !isNull(value))?.value;
  const cursors = [valueOf('before'), valueOf('until')];
  const [before, until] = cursors.map((value) => value && textIn(value));
  const limitValue = valueOf('limit');
  const limit = limitValue === undefined ? LIMIT_MAX : (numberIn(limitValue) ?? 0);
  if (limit < 1 || limit > LIMIT_MAX) return undefined;
  if (cursors.some((value) => value && textIn(value) === undefined)) return undefined;
  return { address, limit, before, until, commitment: valueOf('commitment'), members };
}

/** The live nodes' own answer, or what they have of the page. */
async function readLive(
  request: HistoryRequest,
  page: PageParams,
): Promise<LiveRows | Readonly<{ kind: 'answer'; reply: Reply }>> {
  const { live } = request.tiers;
  const { before, until, limit } = page;
  if (live.length === 0) return older();
  const read = await readPage(request, live, { localOnly: true });
  if (read.kind === 'no-history') return older();
  if (read.kind === 'none' && before !== undefined) return { ...older(), isSure: false };
  const isUnknown = read.kind === 'unknown-cursor';
  if (!isUnknown && (read.kind !== 'rows' || read.rows.length >= limit)) return answer(read.reply);
  const rows = read.kind === 'rows' ? read.rows : [];
  const firsts = await Promise.all(live.map((backend) => firstSlot(request, sourceOf(backend))));
  // From there on every live node has every block.
  const first = firsts.includes(undefined) ? undefined : Math.max(...firsts.map((each) => each ?? 0));
  if (!isUnknown && until === undefined && (before === undefined || rows.length > 0)) return newest(rows);

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
  if (!isUnknown) return known.until === undefined ? newest(rows, beforeSlot) : answer(read.reply);
  if (known.until !== undefined || until === undefined) return older(read.reply);
  const kept = page.members.filter(({ name }) => name !== 'until').map(({ whole }) => whole);
  const params = joined(['[', page.address, ',{', ...listed(kept), '}]']);
  const again = await readPage(request, live, { params, localOnly: true });
  if (again.kind === 'unknown-cursor') return older(read.reply);
  return again.kind === 'rows' && again.rows.length < limit
    ? newest(again.rows, beforeSlot)
    : answer(again.reply);

  /**
   * The archives continue below the oldest row, or below `before` when the live nodes have its slot and nothing older; in
   * both cases with everything below the live nodes' first slot.
   */
  function newest(newer: readonly Row[], start?: Below) {
    const below = newer.at(-1) ?? start;
    const end = Math.min(first ?? Infinity, below?.slot ?? Infinity);
    // Without a row and without the nodes' first slot it is not known which slots the page covers.
    if (end === Infinity) return answer(unavailable(request));
    const above = { backends: live, isLive: true, first: end === 1 ? 0 : end };
    return { ...older(), rows: newer, below, above };
  }
}

function answer(reply: Reply) {
  return { kind: 'answer', reply } as const;
}

/** All rows are older than what the live nodes have. */
function older(refusal?: Reply): LiveRows {
  return { kind: 'rows', rows: [], below: undefined, above: undefined, isSure: true, refusal };
}

/**
 * The slots of the cursors that the live nodes know, by one `getSignatureStatuses`; `undefined` when they do not answer.
 * A cursor below `first`, the highest first slot of them, counts as unknown: the node that gave the page need not be the
 * one that knows it.
 */
async function liveCursors(request: HistoryRequest, { before, until }: PageParams, first: number) {
  const cursors = [before, until].filter((cursor) => cursor !== undefined);
  const params = joined([`[${JSON.stringify(cursors)},{"searchTransactionHistory":true}]`]);
  const changes = { method: 'getSignatureStatuses', params, localOnly: true };
  const result = await readResult(request, request.tiers.live, changes);
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

/** An error about a cursor of the caller's. */
type UnknownCursor = Readonly<{ kind: 'unknown-cursor'; reply: Reply }>;
/** Archives could not answer, or not within a bound of pages. */
type Failed = Readonly<{ kind: 'failed' }>;
const FAILED: Failed = { kind: 'failed' };

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
): Promise<Failed | UnknownCursor | Readonly<{ kind: 'rows'; rows: readonly Row[] }>> {
  let archives = distinctArchives(request.tiers);
  const rows = [...live.rows];
  let { below, above } = live;
  while (above?.first !== 0) {
    const needed = neededSlot(archives, page, above);
    const wanted = { page, below, limit: page.limit - rows.length, needed };
    const section = await newestSection(request, archives, wanted);
    if (section.kind === 'unproven') {
      const first = above && (await firstAfterSkipped(request, archives, above));
      if (above === undefined || first === undefined) return FAILED;
      above = { ...above, first };
      continue;
    }
    if (section.kind !== 'rows') return section;
    rows.push(...section.rows);
    const { archive, end } = section;
    if (end === undefined) break;
    below = rows.at(-1) ?? below ?? { signature: undefined, slot: end };
    above = { ...archive, first: end };
    archives = archives.filter((each) => each !== archive);
  }
  return { kind: 'rows', rows };
}

/** The newest slot that the next archive must have; `undefined`: its rows begin at a cursor of the caller's. */
function neededSlot(archives: readonly Source[], { before }: PageParams, above: Above | undefined) {
  if (above !== undefined) return above.first - 1;
  if (before !== undefined || archives.length < 2) return undefined;
  // The archive with the newest slot begins; one whose last slot is not known may be that one.
  return Math.max(...archives.map(({ last = Number.MAX_SAFE_INTEGER }) => last));
}

/**
 * No archive is known to have the slot right below `above`. What counts as the first slot of `above` then: the one after
 * the archives' last, when the chain skipped those between; 0 when no archive is older. `undefined`: there is a gap.
 */
async function firstAfterSkipped(
  request: HistoryRequest,
  archives: readonly Source[],
  above: Above,
): Promise<number | undefined> {
  const needed = above.first - 1;
  const lasts = archives.filter(({ first = 0 }) => first <= needed).map(({ last = 0 }) => last);
  if (lasts.length === 0) return 0;
  const last = Math.max(...lasts);
  // An archive without a known last slot, or with one up to here, did not show that it has the slot.
  if (last === 0 || last >= needed) return undefined;
  return (await areSkipped(request, [{ from: last + 1, above }])) ? last + 1 : undefined;
}

/** Rows that are wanted of archives; `needed` as in `neededSlot`. */
type Wanted = Readonly<{
  page: PageParams;
  below: Below | undefined;
  limit: number;
  needed: number | undefined;
}>;

/** What one archive has of a page. */
type Section =
  | Failed
  | UnknownCursor
  /** `end`: the rows go down to this first slot of it, and the page goes on below; `undefined`: the page is complete. */
  | Readonly<{ kind: 'rows'; rows: readonly Row[]; archive: Source; end: number | undefined }>
  /** It is not known to have the slot that is needed. */
  | Readonly<{ kind: 'unproven' }>;

/** The rows of the first archive that has the needed slot; those whose ends are known come first. */
async function newestSection(
  request: HistoryRequest,
  archives: readonly Source[],
  wanted: Wanted,
): Promise<Section> {
  const { needed } = wanted;
  const able = needed === undefined ? archives : archives.filter((each) => mayHave(each, needed));
  let missed: Section = { kind: 'unproven' };
  for (const archive of able.toSorted((a, b) => Number(isKnown(b)) - Number(isKnown(a)))) {
    const section = await sectionOf(request, archive, wanted);
    if (section.kind === 'rows') return section;
    // An older archive may know `before`; below newer rows, those of this one would be missing.
    if (section.kind === 'unknown-cursor' && needed !== undefined) return section;
    if (section.kind === 'failed' || missed.kind === 'unproven') missed = section;
  }
  return missed;
}

async function sectionOf(request: HistoryRequest, archive: Source, wanted: Wanted): Promise<Section> {
  const { page, limit, needed } = wanted;
  if (needed !== undefined && archive.last === undefined) {
    const block = await firstBlockFrom(request, archive, needed);
    if (block === undefined) return { kind: 'unproven' };
  }
  const found = await readPastUntil(request, archive, wanted);
  if (found.kind !== 'rows') return found;
  const { rows } = found;
  const complete = { kind: 'rows', rows, archive, end: undefined } as const;
  if (found.ended || rows.length === limit) return complete;
  if (page.until !== undefined && archive.first !== 0) {
    // An archive may leave `until` out of its page, or ignore one that it does not know: its page does not show which.
    const until = await readCursor(request, archive.backends, page.until, page.address);
    if (until.kind === 'unavailable') return FAILED;
    if (until.kind === 'known') return complete;
  }
  const end = await firstSlot(request, archive);
  return end === undefined || end > (needed ?? Infinity) ? { kind: 'unproven' } : { ...complete, end };
}

/** The rows of a page that one archive has; `ended`: `until` is right below them, so no archive has older ones. */
type ArchiveRows = Failed | UnknownCursor | Readonly<{ kind: 'rows'; rows: readonly Row[]; ended: boolean }>;

/** The rows of one archive, also when it does not know `until` because others have it. */
async function readPastUntil(request: HistoryRequest, archive: Source, wanted: Wanted): Promise<ArchiveRows> {
  const found = await readRows(request, archive, wanted);
  const { page } = wanted;
  if (found.kind !== 'unknown-cursor' || page.until === undefined) return found;
  const all = await readRows(request, archive, { ...wanted, page: { ...page, until: undefined } });
  if (all.kind !== 'rows') return all;
  // Without a row the archive showed that there is none down to its first slot.
  const newest = all.rows[0]?.slot ?? (archive.first ?? Infinity) - 1;
  let unknown: ArchiveRows = found;
  for (const { backends } of distinctArchives(request.tiers)) {
    const until = await readCursor(request, backends, page.until, page.address);
    if (until.kind === 'unavailable') unknown = FAILED;
    if (until.kind !== 'known') continue;
    if (until.slot < (archive.first ?? 0)) return all;
    return until.slot > newest ? { kind: 'rows', rows: [], ended: true } : FAILED;
  }
  return unknown;
}

/** Rows above those wanted are dropped page by page; a busy address must not take more of them. */
const PAGES_MAX = 10;
const PAGE_ROWS = 1_000;

/** Reads pages of archives that are alike until there are rows enough or no more. */
async function readRows(
  request: HistoryRequest,
  archive: Source,
  { page, below: given, limit }: Wanted,
): Promise<ArchiveRows> {
  const { pages } = PROFILES[archive.profile];
  const rows: Row[] = [];
  let below = given;
  let { isExact, ...cursor } = firstCursor(pages, archive.last, page, below);
  for (let n = 0; n < PAGES_MAX; n++) {
    const { before } = cursor;
    const pageLimit = isExact ? limit - rows.length : PAGE_ROWS;
    const params = archiveParams(page, pageLimit, cursor);
    const read = await readPage(request, archive.backends, { params });
    // Old Faithful gives no row for a `before` that is none of the address's.
    const isUnmet = pages.untilInclusive && before === page.before && read.rows?.length === 0;
    if (read.rows !== undefined && !(isUnmet && before !== undefined)) {
      // Where runs of epochs come in any order, only slots tell what is newer.
      const sorted = pages.ordered ? read.rows : read.rows.toSorted((a, b) => b.slot - a.slot);
      const end = sorted.findIndex(({ signature }) => signature === page.until);
      const seen = new Set(rows.map(({ signature }) => signature));
      const newer = end === -1 ? sorted : sorted.slice(0, end);
      const count = rows.length;
      for (const row of newer) {
        if (row.slot < (below?.slot ?? Infinity) && !seen.has(row.signature)) rows.push(row);
        seen.add(row.signature);
      }
      if (end !== -1 || rows.length >= limit || sorted.length < pageLimit)
        return { kind: 'rows', rows: rows.slice(0, limit), ended: end !== -1 };
      // A page without a wanted row shows that the archive reaches further up than was known: read long ones from here.
      isExact &&= rows.length > count;
      cursor = { before: sorted.at(-1)?.signature, beforeSlot: undefined };
      continue;
    }
    if (isUnmet && before !== undefined) {
      const knowing = below === undefined ? archive.backends : request.tiers.live;
      const found = await readCursor(request, knowing, before, page.address);
      if (found.kind === 'unavailable') return FAILED;
      if (found.kind === 'unknown') return { kind: 'unknown-cursor', reply: read.reply };
      if (found.isOwn) return { kind: 'rows', rows, ended: false };
      below ??= { signature: before, slot: found.slot + 1 };
    } else if (read.kind !== 'unknown-cursor') return FAILED;
    else if (before === undefined || before !== below?.signature)
      return { kind: 'unknown-cursor', reply: read.reply };
    // The archive does not know the cursor: from its newest row on, what is not below being dropped.
    isExact = false;
    cursor = { before: undefined, beforeSlot: undefined };
  }
  return FAILED;
}

/** Where a page of an archive begins: below a row, or below a slot. */
type Cursor = Readonly<{ before: string | undefined; beforeSlot: number | undefined }>;

/** How to tell the archive where to begin; `isExact`: its page has no row that will be dropped. */
function firstCursor(
  pages: Profile['pages'],
  last: number | undefined,
  { before }: PageParams,
  below: Below | undefined,
): Cursor & Readonly<{ isExact: boolean }> {
  if (below === undefined) return { before, beforeSlot: undefined, isExact: true };
  const { slot, signature } = below;
  if (pages.beforeSlot) return { before: undefined, beforeSlot: slot, isExact: true };
  const isBelow = last !== undefined && last < slot;
  const cursor = last === undefined || isBelow ? undefined : signature;
  return { before: cursor, beforeSlot: undefined, isExact: isBelow || cursor !== undefined };
}

/** `[ADDRESS,{limit,before?,beforeSlot?,until?,commitment?}]`, the address and commitment in the caller's bytes. */
function archiveParams(
  { address, commitment, until }: PageParams,
  limit: number,
  { before, beforeSlot }: Cursor,
): Uint8Array {
  // `JSON.stringify` leaves out what is undefined.
  const config = JSON.stringify({ limit, before, beforeSlot, until }).slice(0, -1);
  const rest = commitment === undefined ? [] : [',"commitment":', commitment];
  return joined(['[', address, ',', config, ...rest, '}]']);
}

/** A page of one backend; without `rows` its reply is an error of the method, or `none`: no answer, a null, something else. */
type PageRead = Readonly<{ reply: Reply }> &
  (
    | Readonly<{ kind: 'rows'; rows: readonly Row[] }>
    | Readonly<{ kind: 'unknown-cursor' | 'no-history' | 'error' | 'none'; rows?: undefined }>
  );

/** Agave since 4.0. */
const UNKNOWN_CURSOR = -32020;
const NO_HISTORY = -32011;

async function readPage(
  { read }: HistoryRequest,
  backends: readonly Backend[],
  changes: Changes,
): Promise<PageRead> {
  const reply = await read(backends, changes);
  if (reply.kind !== 'whole') return { kind: 'none', reply };
  const list = memberOf(reply.bytes, 'result');
  const rows = list && rowsIn(list);
  if (rows !== undefined) return { kind: 'rows', rows, reply };
  const code = failureOf(reply.bytes)?.code;
  if (code === undefined) return { kind: 'none', reply };
  if (code === UNKNOWN_CURSOR) return { kind: 'unknown-cursor', reply };
  return { kind: code === NO_HISTORY ? 'no-history' : 'error', reply };
}

function rowsIn(list: Uint8Array): readonly Row[] | undefined {
  const rows: Row[] = [];
  const elements = elementsOf(list);
  for (const bytes of elements ?? []) {
    // Signatures and slots are ASCII. Parsed whole, because that is six times as fast as looking for two members.
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    const { signature, slot }: { signature?: unknown; slot?: unknown } = Object(JSON.parse(text));
    if (typeof signature !== 'string' || typeof slot !== 'number' || !Number.isSafeInteger(slot))
      return undefined;
    rows.push({ bytes, signature, slot });
  }
  return elements && rows;
}

/** What some backends know of a cursor. */
type CursorRead =
  /** `isOwn`: the address is in the transaction, so it is among its rows. Agave takes any other one as a slot. */
  | { readonly kind: 'known'; readonly slot: number; readonly isOwn: boolean }
  | { readonly kind: 'unknown' }
  /** They do not answer. */
  | { readonly kind: 'unavailable' };

/** Finds the slot of a cursor by its transaction. */
async function readCursor(
  request: HistoryRequest,
  backends: readonly Backend[],
  signature: string,
  address: Uint8Array,
): Promise<CursorRead> {
  const config = '{"encoding":"json","maxSupportedTransactionVersion":255}';
  const params = joined([`[${JSON.stringify(signature)},${config}]`]);
  const result = await readResult(request, backends, { method: 'getTransaction', params });
  if (isNull(result)) return { kind: 'unknown' };
  const slot = numberIn(result && memberOf(result, 'slot'));
  if (result === undefined || slot === undefined) return { kind: 'unavailable' };
  const lists = [
    memberAt(result, ['transaction', 'message', 'accountKeys']),
    memberAt(result, ['meta', 'loadedAddresses']),
  ];
  const own = JSON.stringify(textIn(address));
  return { kind: 'known', slot, isOwn: lists.some((list) => list && Buffer.from(list).includes(own)) };
}

function memberAt(json: Uint8Array, names: readonly string[]): Uint8Array | undefined {
  return names.reduce<Uint8Array | undefined>((outer, name) => outer && memberOf(outer, name), json);
}
