import { unreachable } from '../../shared/brand.ts';
import type { Verdict } from './verdict.ts';

/** Errors of a live node that say less about a slot than the archive's "skipped" does. */
const GIVES_WAY = new Set([-32001, -32004, -32011]);
const SKIPPED_FOR_GOOD = -32009;

/** Errors of a live node that only say that it has the thing no more, or never had it. */
const NOT_HERE = new Set([-32001, -32011]);
/** Those that say so of what is below its floor; of newer slots they are a word about the chain. */
const NOT_HERE_BELOW = new Set([-32004, -32007]);
/** Errors by which an archive says that it could not look (Superbank's time-out, Agave `custom_error.rs`). */
const COULD_NOT_LOOK = new Set([-32000, -32005, -32019, -32603]);

/** What is known of a thing that neither tier has. */
export type Missing = Readonly<{
  /** A block's time is asked for: its null is an answer of the node that has the block. */
  isTime: boolean;
  /** The slot is newer than what the live nodes have finalized: an archive cannot know it yet. */
  isNew: boolean;
  /** The slot is not known to be within what every live node has. */
  isBelow: boolean;
  /** An archive that was asked may have it. */
  mayBeArchived: boolean;
}>;

/** Which tier's "no" is the answer when both say no, so that the more certain one is heard. */
export function chooseSaying(
  live: Verdict,
  archive: Verdict,
  missing: Missing,
): 'live' | 'archive' | 'storage-unreachable' {
  const { isTime, isNew } = missing;
  const skipped = archive.kind === 'lacking' && archive.code === SKIPPED_FOR_GOOD;
  switch (live.kind) {
    case 'null':
      if (archive.kind === 'unreachable') return 'storage-unreachable';
      return archive.kind === 'lacking' && !isTime ? 'archive' : 'live';
    case 'lacking':
      if (couldNotLook(archive) && isOpen(live.code, missing)) return 'storage-unreachable';
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

function couldNotLook(archive: Verdict): boolean {
  return archive.kind === 'unreachable' || (archive.kind === 'lacking' && COULD_NOT_LOOK.has(archive.code));
}

/** Whether a live node's error leaves it open that an archive has the thing. */
function isOpen(code: number, { isBelow, mayBeArchived }: Missing): boolean {
  return mayBeArchived && (NOT_HERE.has(code) || (isBelow && NOT_HERE_BELOW.has(code)));
}
