import { unreachable } from '../../shared/brand.ts';
import { type Part, partAt, type Start } from './archive-part.ts';
import type { From, SpanRows } from './archive-walk.ts';
import { isSkipped } from './first-block.ts';
import type { PageParams } from './page-params.ts';
import type { Row } from './page-rows.ts';
import type { Passage } from './passage.ts';
import { type Span, spansOf } from './spans.ts';

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
export async function archiveRows(
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
