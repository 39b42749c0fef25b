import { unreachable } from '../../shared/brand.ts';
import type { Reply } from '../upstream/forward.ts';
import { storageUnreachable } from './answers.ts';
import { archiveRows } from './archive-page.ts';
import type { Start } from './archive-part.ts';
import type { From } from './archive-walk.ts';
import { tellFloor } from './holding.ts';
import { findCursors } from './known-cursors.ts';
import { type PageParams, pageParamsOf, withoutUntil } from './page-params.ts';
import { type PageRead, pageOf, readPage, type Row } from './page-rows.ts';
import type { Passage } from './passage.ts';
import { meetingLive } from './tiers.ts';
import { haveWholeChain } from './whole-chain.ts';

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
