import { unreachable } from '../../shared/brand.ts';
import type { Backend } from '../upstream/backend.ts';
import type { Reply } from '../upstream/forward.ts';
import {
  type CursorPlace,
  type From,
  pageOf,
  type PageParams,
  pageParamsOf,
  type PageRead,
  placeOf,
  readPage,
  type Row,
  type SpanRows,
  walk,
  withoutUntil,
} from './page.ts';
import { type Passage, readWhole, storageUnreachable } from './request.ts';
import { elementsOf, joined, memberOf, numberIn } from './slices.ts';
import {
  beginsAt,
  firstBlockFrom,
  haveWholeChain,
  isKnown,
  isSkipped,
  mayHold,
  meetingLive,
  type Span,
  spansOf,
  tellFloor,
} from './tiers.ts';

/** The slots of those of the two cursors that every live node has, in its own storage. */
type KnownCursors = Readonly<{ before: number | undefined; until: number | undefined }>;

/**
 * Finds by one `getSignatureStatuses` which cursors of a page the live nodes know; `undefined` when they do not say.
 * A cursor below `floor`, the highest of theirs, counts as unknown: the node that gave the page need not be the one
 * that knows it.
 */
async function findCursors(
  { ask, tiers }: Passage,
  { before, until }: PageParams,
  floor: number,
): Promise<KnownCursors | undefined> {
  const asked = [before, until].flatMap((signature) => (signature === undefined ? [] : [signature]));
  const params = joined(['[', JSON.stringify(asked), ',{"searchTransactionHistory":true}]']);
  const reply = await readWhole(
    await ask(tiers.live, { method: 'getSignatureStatuses', params, localOnly: true, readable: true }),
  );
  const result = reply.kind === 'whole' ? memberOf(reply.bytes, 'result') : undefined;
  const value = result === undefined ? undefined : memberOf(result, 'value');
  const statuses = value === undefined ? undefined : elementsOf(value);
  if (statuses?.length !== asked.length) return undefined;
  const slots = statuses.map((status) => {
    const slot = numberIn(memberOf(status, 'slot'));
    return slot !== undefined && slot >= floor ? slot : undefined;
  });
  return {
    before: before === undefined ? undefined : slots[0],
    until: until === undefined ? undefined : slots.at(-1),
  };
}

/** Where an `until` stands that an archive which is asked for rows does not know. */
type UntilPlace = Readonly<{
  kind:
    /** Below all that the archive has: all its rows are newer. */
    | 'older'
    /** Above where the rows begin: there are none between the two cursors. */
    | 'newer'
    /** Nowhere; or it is `before` that the archive does not know. */
    | 'unknown'
    /** Nobody says. */
    | 'untold';
}>;

/** Finds the place of `until` by its transaction, in the archives that may have it. */
async function placeOfUntil(
  passage: Passage,
  { backends, floor }: Span,
  { before, address }: PageParams,
  until: string,
  from: From,
): Promise<UntilPlace> {
  const start = from.kind === 'below' ? from : await startOf();
  if (start === undefined || start.kind === 'unknown') return { kind: 'unknown' };
  if (start.kind === 'untold') return { kind: 'untold' };
  const place = await inAnyArchive(passage, until, address);
  if (place.kind === 'unknown' || place.kind === 'untold') return place;
  if (place.slot < (floor ?? 0)) return { kind: 'older' };
  return place.slot > start.slot ? { kind: 'newer' } : { kind: 'untold' };

  /** Without a `before` the rows begin at the newest one, which is newer than any cursor. */
  async function startOf() {
    return before === undefined
      ? { kind: 'own' as const, slot: Infinity }
      : placeOf(passage, backends, before, address);
  }
}

async function inAnyArchive(passage: Passage, signature: string, address: Uint8Array): Promise<CursorPlace> {
  let untold: CursorPlace | undefined;
  for (const { backends } of spansOf(passage.tiers)) {
    const place = await placeOf(passage, backends, signature, address);
    if (place.kind === 'own' || place.kind === 'foreign') return place;
    if (place.kind === 'untold') untold = place;
  }
  return untold ?? { kind: 'unknown' };
}

/** Where archives take a page over. */
type Start = Readonly<{
  from: From;
  /** Who has everything down to a slot; `undefined` where the archives' rows begin, wherever that is. */
  above: Above | undefined;
}>;

type Above = Readonly<{ floor: number; backends: readonly Backend[]; localOnly: boolean }>;

/** What an archive made of its part: `floor` is where its part ends. */
type Part =
  | Exclude<SpanRows, { kind: 'rows' }>
  | { readonly kind: 'full'; readonly rows: readonly Row[] }
  | { readonly kind: 'part'; readonly rows: readonly Row[]; readonly floor: number; readonly span: Span }
  /** It does not have the slot that is needed, or nobody knows that it has. */
  | { readonly kind: 'unproven' };

/** The rows of the first archive that has the part which begins at `at`. */
async function partAt(
  passage: Passage,
  spans: readonly Span[],
  asked: PageParams,
  at: Start,
  limit: number,
): Promise<Part> {
  const need = neededSlot(spans, asked, at);
  const able = need === undefined ? spans : spans.filter((span) => mayHold(span, need));
  let unmet: Part | undefined;
  let failed: Part | undefined;
  for (const span of [...able.filter(isKnown), ...able.filter((each) => !isKnown(each))]) {
    const part = await partOf(passage, span, asked, { from: at.from, need }, limit);
    switch (part.kind) {
      case 'full':
      case 'part':
      case 'caller-left':
        return part;
      case 'failed':
        failed = part;
        break;
      case 'unknown-cursor':
        // An older archive may know `before`; what is newer than this one's part would be a hole in any other page.
        if (need !== undefined) return part;
        unmet ??= part;
        break;
      case 'unproven':
        break;
      default:
        return unreachable(part);
    }
  }
  return failed ?? unmet ?? { kind: 'unproven' };
}

/** The newest slot that the next archive must have; `undefined`: where it begins is told by a cursor of its own. */
function neededSlot(spans: readonly Span[], { before }: PageParams, { from, above }: Start) {
  if (above !== undefined) return above.floor - 1;
  if ((from.kind === 'caller' && before !== undefined) || spans.length < 2) return undefined;
  // The newest of several begins; while one is not known it may be that one.
  return spans.every(({ top }) => top !== 0) ? Math.max(...spans.map(({ top }) => top)) : Infinity;
}

type Begin = Readonly<{ from: From; need: number | undefined }>;

async function partOf(
  passage: Passage,
  span: Span,
  asked: PageParams,
  { from, need }: Begin,
  limit: number,
): Promise<Part> {
  const of = { backends: span.backends, localOnly: false };
  const found = await walkPastUntil(passage, span, asked, from, limit);
  if (found.kind !== 'rows') return found;
  const { rows } = found;
  if (need !== undefined && span.top === 0 && !found.overlaps) {
    const block = need === Infinity ? undefined : await firstBlockFrom(passage, of, need);
    if (block === undefined || block === Infinity) return { kind: 'unproven' };
  }
  if (found.ended || rows.length === limit) return { kind: 'full', rows };
  if (asked.until !== undefined && span.floor !== 0) {
    // An archive may leave `until` out of its page, or overlook one that it does not know: its page tells nothing of it.
    const until = await placeOf(passage, span.backends, asked.until, asked.address);
    if (until.kind === 'untold') return { kind: 'failed' };
    if (until.kind !== 'unknown') return { kind: 'full', rows };
  }
  const told = span.floor ?? (await firstBlockFrom(passage, of, 0));
  if (told === undefined || told > (need ?? Infinity) || told === Infinity) return { kind: 'unproven' };
  return { kind: 'part', rows, floor: beginsAt(told), span };
}

/** The rows of one archive; an `until` that is older than what it has is not asked for. */
async function walkPastUntil(
  passage: Passage,
  span: Span,
  asked: PageParams,
  from: From,
  limit: number,
): Promise<SpanRows> {
  const found = await walk({ passage, span, asked, from, limit });
  if (found.kind !== 'unknown-cursor' || asked.until === undefined) return found;
  const until = await placeOfUntil(passage, span, asked, asked.until, from);
  switch (until.kind) {
    case 'older':
      return walk({ passage, span, asked: { ...asked, until: undefined }, from, limit });
    case 'newer':
      return { kind: 'rows', rows: [], ended: true, overlaps: true };
    case 'unknown':
      return found;
    case 'untold':
      return { kind: 'failed' };
    default:
      return unreachable(until.kind);
  }
}

/** The rows of a page that the archives have, or why there is no page. */
type ArchiveRows =
  { readonly kind: 'rows'; readonly rows: readonly Row[] } | Exclude<SpanRows, { kind: 'rows' }>;

/**
 * At most `limit` rows, newest first, from the archives that have them: one, or several that hold a part each. Every part
 * begins where the one above it ends. The page ends before its limit only at `until` or at the first slot that any
 * backend has, as a node's pages end at its first block; slots above that which no backend is known to have, and that
 * the chain did not skip, make it `failed`. An archive whose first slot is not known may have anything and proves no
 * end: it is asked for its first block, and without an answer a page that would end on it is `failed` too.
 */
async function archiveRows(
  passage: Passage,
  asked: PageParams,
  start: Start,
  limit: number,
): Promise<ArchiveRows> {
  let spans = spansOf(passage.tiers);
  const rows: Row[] = [];
  let at = start;
  for (;;) {
    const part = await partAt(passage, spans, asked, at, limit - rows.length);
    switch (part.kind) {
      case 'full':
        return { kind: 'rows', rows: [...rows, ...part.rows] };
      case 'part':
        rows.push(...part.rows);
        at = belowPart(part, rows.at(-1), at.from);
        // What it has told of itself on the way need not be found out again.
        spans = spans.map((span) => (span === part.span ? { ...span, floor: part.floor } : span));
        break;
      case 'unproven': {
        const next = await afterUnproven(passage, spans, at);
        if (next.kind !== 'on') return next.kind === 'end' ? { kind: 'rows', rows } : { kind: 'failed' };
        at = next.at;
        break;
      }
      case 'failed':
      case 'unknown-cursor':
      case 'caller-left':
        return part;
      default:
        return unreachable(part);
    }
    if (at.above !== undefined && at.above.floor === 0) return { kind: 'rows', rows };
  }
}

/** Where the next older archive's part begins: below the oldest row, or below what the one before it has. */
function belowPart(
  { floor, span }: Extract<Part, { kind: 'part' }>,
  oldest: Row | undefined,
  from: From,
): Start {
  const above = { floor, backends: span.backends, localOnly: false };
  if (oldest !== undefined) return { from: { kind: 'below', ...oldest }, above };
  if (from.kind === 'below') return { from, above };
  return { from: { kind: 'below', signature: undefined, slot: floor }, above };
}

type Next = { readonly kind: 'on'; readonly at: Start } | { readonly kind: 'end' } | { readonly kind: 'gap' };

/** Nobody has the slot right below: history ends there, the chain skipped it, or there is a gap. */
async function afterUnproven(passage: Passage, spans: readonly Span[], at: Start): Promise<Next> {
  const { above, from } = at;
  if (above === undefined) return { kind: 'gap' };
  const needed = above.floor - 1;
  const older = spans.filter(({ floor }) => floor === undefined || floor <= needed);
  if (older.length === 0) return { kind: 'end' };
  const top = Math.max(...older.map((span) => span.top));
  // Nobody knows where one ends that has no known top, or one that may reach up to here and does not say.
  const isBelow = top !== 0 && top < needed;
  return isBelow && (await isSkipped(passage, above, top + 1, above.floor))
    ? { kind: 'on', at: { from, above: { ...above, floor: top + 1 } } }
    : { kind: 'gap' };
}

/** Agave since 4.0: a cursor that the node does not know. */
const UNKNOWN_CURSOR = -32020;
/** The node keeps no history at all. */
const NO_HISTORY = -32011;

/** What the live nodes make of a page. */
type LivePage =
  /** It is the answer. */
  | { readonly kind: 'whole'; readonly reply: Reply }
  /** Its rows are right, and older ones may be in the archive. */
  | { readonly kind: 'short'; readonly rows: readonly Row[]; readonly start: Start; readonly reply: Reply }
  /** All of it is older than what they have; `sure`, or because they cannot be asked. */
  | { readonly kind: 'older'; readonly sure: boolean; readonly reply: Reply | undefined }
  /** They do not say what they have. */
  | { readonly kind: 'untold' };

/**
 * `getSignaturesForAddress`: one page across the tiers (rpc.md 4.3), newest first, the rows spliced in their own bytes.
 * A page ends before its limit only where the history ends or `until` stands; anything else is an error.
 */
export async function forwardPage(given: Passage): Promise<Reply> {
  const tiers = { ...given.tiers, live: meetingLive(given.tiers) };
  const passage = { ...given, tiers };
  const { call } = passage;
  const asked = pageParamsOf(call.params);
  if (asked === undefined) return passage.through();
  const live = tiers.live.length === 0 ? older() : await livePage(passage, asked);
  if (live.kind === 'whole') return live.reply;
  if (passage.signal.aborted) return { kind: 'caller-left' };
  if (live.kind === 'untold') return storageUnreachable(call.id);
  const rows = live.kind === 'short' ? live.rows : [];
  const start: Start = live.kind === 'short' ? live.start : { from: { kind: 'caller' }, above: undefined };
  const archive = await archiveRows(passage, asked, start, asked.limit - rows.length);
  switch (archive.kind) {
    case 'rows':
      if (archive.rows.length > 0) return pageOf([...rows, ...archive.rows], call.id);
      if (live.kind === 'short') return live.reply;
      return live.sure ? pageOf([], call.id) : storageUnreachable(call.id);
    case 'unknown-cursor':
      if (!(await haveWholeChain(passage))) return storageUnreachable(call.id);
      if (live.kind === 'short') return archive.reply;
      return live.sure ? (live.reply ?? archive.reply) : storageUnreachable(call.id);
    case 'caller-left':
      return archive.reply;
    case 'failed':
      return storageUnreachable(call.id);
    default:
      return unreachable(archive);
  }
}

async function livePage(passage: Passage, asked: PageParams): Promise<LivePage> {
  const read = await readLive(passage, passage.call.params);
  if (read.kind === 'error' && read.code === NO_HISTORY) return older();
  if (read.kind === 'none' && asked.before !== undefined) return { ...older(), sure: false };
  const isUnknown = read.kind === 'error' && read.code === UNKNOWN_CURSOR;
  if (!isUnknown && (read.kind !== 'rows' || read.rows.length >= asked.limit)) return whole(read);
  const hasRows = read.kind === 'rows' && read.rows.length > 0;
  const isPlain = asked.until === undefined && (asked.before === undefined || hasRows);
  const floor = await tellFloor(passage);
  if (read.kind === 'rows' && isPlain) return short(passage, read, asked, floor);

  // What one node alone knows of its cursors holds for its page; of several nobody knows which one was asked.
  const known = await findCursors(passage, asked, floor ?? (passage.tiers.live.length === 1 ? 0 : Infinity));
  if (known === undefined) return { kind: 'untold' };
  const isBeforeOlder = asked.before !== undefined && known.before === undefined && !hasRows;
  // Rows older than `before` and newer than `until` cannot be when `until` is the newer of the two.
  if (isBeforeOlder && known.until !== undefined)
    return { kind: 'whole', reply: pageOf([], passage.call.id) };
  if (isBeforeOlder) return older(isUnknown ? read.reply : undefined);
  if (read.kind === 'rows') {
    return known.until === undefined ? short(passage, read, asked, floor, known.before) : whole(read);
  }
  if (known.until !== undefined || asked.until === undefined) return older(read.reply);
  const again = await readLive(passage, withoutUntil(asked));
  if (again.kind === 'error' && again.code === UNKNOWN_CURSOR) return older(read.reply);
  return again.kind === 'rows' && again.rows.length < asked.limit
    ? short(passage, again, asked, floor, known.before)
    : whole(again);
}

function readLive({ ask, tiers }: Passage, params: Uint8Array | undefined): Promise<PageRead> {
  return readPage(ask(tiers.live, { params, localOnly: true, readable: true }));
}

function older(reply?: Reply): Extract<LivePage, { kind: 'older' }> {
  return { kind: 'older', sure: true, reply };
}

function whole({ reply }: PageRead): LivePage {
  return { kind: 'whole', reply };
}

/**
 * The archives go on below the oldest row, or below `before` when the live nodes have its slot and nothing older; in both
 * cases with everything that is below the live nodes' floor.
 */
function short(
  { tiers }: Passage,
  { rows, reply }: Extract<PageRead, { kind: 'rows' }>,
  { before }: PageParams,
  floor: number | undefined,
  beforeSlot?: number,
): LivePage {
  const oldest =
    rows.at(-1) ?? (beforeSlot === undefined ? undefined : { signature: before, slot: beforeSlot });
  const from: From =
    oldest === undefined
      ? { kind: 'caller' }
      : { kind: 'below', signature: oldest.signature, slot: oldest.slot };
  const reach = Math.min(floor ?? Infinity, oldest?.slot ?? Infinity);
  // Nobody knows what a page without a row covers when it came from nodes that do not tell where they begin.
  if (reach === Infinity) return { kind: 'untold' };
  if (reach <= 1) return { kind: 'whole', reply };
  const above = { floor: reach, backends: tiers.live, localOnly: true };
  return { kind: 'short', rows, reply, start: { from, above } };
}
