import type { From } from './archive-walk.ts';
import { type CursorPlace, placeOf } from './cursor-place.ts';
import type { PageParams } from './page-params.ts';
import type { Passage } from './passage.ts';
import { type Span, spansOf } from './spans.ts';

/** Where an `until` stands that an archive which is asked for rows does not know. */
export type UntilPlace = Readonly<{
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
export async function placeOfUntil(
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
