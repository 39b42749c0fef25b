import { unreachable } from '../../shared/brand.ts';
import type { Verdict } from './verdict.ts';

/** Errors of a live node that say less about a slot than the archive's "skipped" does. */
const GIVES_WAY = new Set([-32001, -32004, -32011]);
const SKIPPED_FOR_GOOD = -32009;

/** What is known of a thing that neither tier has. */
type Missing = Readonly<{
  /** A block's time is asked for: its null is an answer of the node that has the block. */
  isTime: boolean;
  /** The slot is newer than what the live nodes have finalized: an archive cannot know it yet. */
  isNew: boolean;
}>;

/** Which tier's "no" is the answer when both say no, so that the more certain one is heard. */
export function chooseSaying(
  live: Verdict,
  archive: Verdict,
  { isTime, isNew }: Missing,
): 'live' | 'archive' | 'storage-unreachable' {
  const skipped = archive.kind === 'lacking' && archive.code === SKIPPED_FOR_GOOD;
  switch (live.kind) {
    case 'null':
      if (archive.kind === 'unreachable') return 'storage-unreachable';
      return archive.kind === 'lacking' && !isTime ? 'archive' : 'live';
    case 'lacking':
      return skipped && !isNew && GIVES_WAY.has(live.code) ? 'archive' : 'live';
    case 'unreachable':
      // Only a live node could know: an archive's null alone would read as "never".
      return archive.kind === 'lacking' && !(skipped && isNew) ? 'archive' : 'live';
    case 'found':
    case 'refused':
    case 'caller-left':
      return 'live';
    default:
      return unreachable(live);
  }
}
