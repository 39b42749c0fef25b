import { unreachable } from '../../shared/brand.ts';
import type { Backend } from '../upstream/backend.ts';
import { type From, type SpanRows, walk } from './archive-walk.ts';
import { placeOf } from './cursor-place.ts';
import { firstBlockFrom } from './first-block.ts';
import type { PageParams } from './page-params.ts';
import type { Row } from './page-rows.ts';
import type { Passage } from './passage.ts';
import { isKnown, mayHold, type Span } from './spans.ts';
import { beginsAt } from './tiers.ts';
import { placeOfUntil } from './until-place.ts';

/** Where archives take a page over. */
export type Start = Readonly<{
  from: From;
  /** Who has everything down to a slot; `undefined` where the archives' rows begin, wherever that is. */
  above: Above | undefined;
}>;

type Above = Readonly<{ floor: number; backends: readonly Backend[]; localOnly: boolean }>;

/** What an archive made of its part: `floor` is where its part ends. */
export type Part =
  | Exclude<SpanRows, { kind: 'rows' }>
  | { readonly kind: 'full'; readonly rows: readonly Row[] }
  | { readonly kind: 'part'; readonly rows: readonly Row[]; readonly floor: number; readonly span: Span }
  /** It does not have the slot that is needed, or nobody knows that it has. */
  | { readonly kind: 'unproven' };

/** The rows of the first archive that has the part which begins at `at`. */
export async function partAt(
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
