import type { Reply } from '../backend/forward.ts';
import { placeOf } from './cursor-place.ts';
import { archivePageParams, type PageParams } from './page-params.ts';
import { type PageRead, readPage, type Row } from './page-rows.ts';
import type { Passage } from './passage.ts';
import type { Span } from './tiers.ts';

/** Where an archive's part of a page begins. */
export type From =
  /** At the caller's own `before`, or at the newest row. */
  | { readonly kind: 'caller' }
  /** Below a row or cursor of a newer tier, which has every row from its slot on. */
  | { readonly kind: 'below'; readonly signature: string | undefined; readonly slot: number };

/** The rows of a page that an archive has. */
export type SpanRows =
  /** `ended` when there are no older ones to be asked for elsewhere. */
  | { readonly kind: 'rows'; readonly rows: readonly Row[]; readonly ended: boolean }
  /** It does not know a cursor of the caller's. */
  | { readonly kind: 'unknown-cursor'; readonly reply: Reply }
  | { readonly kind: 'caller-left'; readonly reply: Reply }
  /** It could not answer, or not within a bound of pages. */
  | { readonly kind: 'failed' };

/** An archive's rows above a seam are thrown away page by page; a busy address must not take more of them. */
const PAGES_MAX = 10;
const PAGE_ROWS = 1_000;
const UNKNOWN_CURSOR = -32020;

type Walk = Readonly<{
  passage: Passage;
  span: Span;
  asked: PageParams;
  from: From;
  limit: number;
}>;

/** Reads pages of archives that are alike until there are rows enough or no more. */
export async function walk({ passage, span, asked, from: start, limit }: Walk): Promise<SpanRows> {
  const { backends, profile } = span;
  const { pages } = profile;
  const { until } = asked;
  const rows: Row[] = [];
  let from = start;
  let { before, beforeSlot, exact } = cursorFor(from, asked, span);
  for (let page = 0; page < PAGES_MAX; page++) {
    const pageLimit = exact ? limit - rows.length : PAGE_ROWS;
    const params = archivePageParams(asked, { limit: pageLimit, before, beforeSlot, until });
    const read = await readPage(passage.ask(backends, { params, readable: true }));
    if (read.kind !== 'rows') {
      const isOurs = from.kind === 'below' && before !== undefined && before === from.signature;
      if (!isOurs || !isUnknownCursor(read)) return failureFrom(read);
      // Its known top was further than its index: what the live nodes have is dropped instead.
      before = undefined;
      exact = false;
      continue;
    }
    const isUnmet = read.rows.length === 0 && pages.untilInclusive && before === asked.before;
    if (isUnmet && before !== undefined) {
      const place = await placeOf(
        passage,
        from.kind === 'below' ? passage.tiers.live : backends,
        before,
        asked.address,
      );
      if (place.kind === 'own') return { kind: 'rows', rows, ended: false };
      if (place.kind === 'unknown') return { kind: 'unknown-cursor', reply: read.reply };
      if (place.kind === 'untold') return { kind: 'failed' };
      if (from.kind === 'caller') from = { kind: 'below', signature: before, slot: place.slot + 1 };
      before = undefined;
      exact = false;
      continue;
    }
    const sorted = pages.ordered ? read.rows : read.rows.toSorted((a, b) => b.slot - a.slot);
    const { taken, ended } = take(sorted, from, until, rows);
    rows.push(...taken.slice(0, limit - rows.length));
    if (ended || rows.length === limit || sorted.length < pageLimit) return { kind: 'rows', rows, ended };
    // It reaches further up than was known: short pages would be thrown away one by one.
    if (taken.length === 0) exact = false;
    before = sorted.at(-1)?.signature;
    beforeSlot = undefined;
  }
  return { kind: 'failed' };
}

/** How to say where to begin to this archive, and whether it then gives no row that must be dropped. */
function cursorFor(from: From, { before }: PageParams, { profile: { pages }, top }: Span) {
  if (from.kind === 'caller') return { before, beforeSlot: undefined, exact: true };
  if (pages.beforeSlot) return { before: undefined, beforeSlot: from.slot, exact: true };
  if (top >= from.slot && from.signature !== undefined)
    return { before: from.signature, beforeSlot: undefined, exact: true };
  return { before: undefined, beforeSlot: undefined, exact: top !== 0 && top < from.slot };
}

/** The rows of a page that belong to the answer and are not in it yet; `ended` when `until` was among them. */
function take(page: readonly Row[], from: From, until: string | undefined, had: readonly Row[]) {
  const end = until === undefined ? -1 : page.findIndex(({ signature }) => signature === until);
  const newer = end === -1 ? page : page.slice(0, end);
  const seen = new Set(had.map(({ signature }) => signature));
  const taken = newer.filter(({ signature, slot }) => {
    if (seen.has(signature) || (from.kind === 'below' && slot >= from.slot)) return false;
    seen.add(signature);
    return true;
  });
  return { taken, ended: end !== -1 };
}

function isUnknownCursor(read: PageRead): boolean {
  return read.kind === 'error' && read.code === UNKNOWN_CURSOR;
}

function failureFrom(read: Exclude<PageRead, { kind: 'rows' }>): SpanRows {
  const { reply } = read;
  if (reply.kind === 'caller-left') return { kind: 'caller-left', reply };
  return isUnknownCursor(read) ? { kind: 'unknown-cursor', reply } : { kind: 'failed' };
}
