import { unreachable } from '../../shared/brand.ts';
import { floorsOf, type Span, spansOf } from './tiers.ts';
import { type From, type SpanRows, walk } from './archive-walk.ts';
import type { PageParams } from './page-params.ts';
import type { Row } from './page-rows.ts';
import type { Passage } from './passage.ts';

/** Genesis is slot 0 and holds no transactions. */
const FIRST_SLOT = 1;

/** At most `limit` rows, newest first, from the archives that have them: one, or several that hold a part each. */
export async function archiveRows(
  passage: Passage,
  asked: PageParams,
  from: From,
  limit: number,
): Promise<SpanRows> {
  const rows: Row[] = [];
  let unmet: SpanRows | undefined;
  /** The newest slot that an archive which failed would have been needed for. */
  let lost: number | undefined;
  let done: Span | undefined;
  for (const span of spansOf(passage.tiers)) {
    if (done !== undefined && (span.floor >= done.floor || done.floor <= FIRST_SLOT)) continue;
    if (lost !== undefined && span.top !== 0 && span.top < lost) break;
    const start = done === undefined ? from : belowOf(done, rows.at(-1), from);
    const result = await walk({ passage, span, asked, from: start, limit: limit - rows.length });
    switch (result.kind) {
      case 'rows':
        rows.push(...result.rows);
        if (result.ended || rows.length === limit) return { kind: 'rows', rows, ended: true };
        done = span;
        lost = undefined;
        break;
      case 'failed':
        lost = Math.max(lost ?? 0, neededUpTo(span, passage));
        break;
      case 'unknown-cursor':
        // An older archive may know `before`; but without what is newer, its rows would leave a hole.
        if (start.kind === 'below' || asked.before === undefined) return result;
        unmet ??= result;
        break;
      case 'caller-left':
        return result;
      default:
        return unreachable(result);
    }
  }
  if (lost !== undefined) return { kind: 'failed' };
  return done === undefined && unmet !== undefined ? unmet : { kind: 'rows', rows, ended: true };
}

/** Where the next older archive's part begins: below the oldest row, or below what the one before it has. */
function belowOf(done: Span, oldest: Row | undefined, from: From): From {
  if (oldest !== undefined) return { kind: 'below', ...oldest };
  return from.kind === 'below' ? from : { kind: 'below', signature: undefined, slot: done.floor };
}

/** An archive that stands in for another must have what the live nodes have not. */
function neededUpTo({ top, floor }: Span, { tiers }: Passage): number {
  const upTo = Math.min(top === 0 ? Infinity : top, (floorsOf(tiers)?.highest ?? Infinity) - 1);
  return upTo === Infinity ? floor : upTo;
}
