import type { Clock } from '../../shared/clock.ts';
import type { Backend } from '../upstream/backend.ts';
import type { CallReply } from '../upstream/failover.ts';
import { elementsOf, numberIn, withConfig } from '../json/slices.ts';
import {
  type Changes,
  distinctArchives,
  firstsOf,
  type HistoryRequest,
  isFinal,
  mayHave,
  type ReplyClass,
  classify,
  sourceOf,
} from './tiers.ts';

/** A live node that has the transaction answers well within it; later the archives are called too. */
const HEAD_START_MS = 150;

/** `getTransaction`: live nodes, then archives too. The first real answer wins; a quick null never wins over real data. */
export async function answerTransaction(request: HistoryRequest, clock: Clock): Promise<CallReply> {
  const { call, tiers } = request;
  const live = start(request, [tiers.live], { localOnly: true });
  const late = new AbortController();
  const early = await Promise.race([live.reply, clock.sleep(HEAD_START_MS, late.signal)]);
  late.abort();
  if (early && isFinal(early)) return early;
  const archives = distinctArchives(tiers).map(({ backends }) => backends);
  const archive = start(request, archives, { params: archiveParams(call.params) });
  const byLive = live.reply.then((reply) => (isFinal(reply) ? live : undefined));
  const byArchive = archive.reply.then((reply) => (classify(reply).kind === 'found' ? archive : undefined));
  const won = (await Promise.race([byLive, byArchive])) ?? (await byLive) ?? (await byArchive);
  if (won !== undefined) {
    (won === live ? archive : live).cancel();
    return won.reply;
  }
  const reply = await archive.reply;
  const mayBeArchived = reply.kind !== 'too-large';
  const missing = { isTime: false, isNew: true, isBelow: false, mayBeArchived };
  return isFinal(reply) ? reply : replyOfNeither(request, await live.reply, reply, missing);
}

/** Calls one group of backends after the other until one does not say "not here", which all must say for a null. */
function start(request: HistoryRequest, groups: readonly (readonly Backend[])[], changes: Changes) {
  const own = new AbortController();
  const signal = AbortSignal.any([request.signal, own.signal]);
  return { reply: firstFinal(), cancel: () => own.abort() };

  async function firstFinal(): Promise<CallReply> {
    let kept: CallReply | undefined;
    for (const [i, backends] of groups.entries()) {
      const hasNext = i < groups.length - 1;
      const reply = await request.send(backends, { ...changes, signal, hasNext });
      if (isFinal(reply)) return reply;
      if (kept === undefined || classify(kept).kind === 'null') kept = reply;
    }
    return kept ?? { kind: 'no-backend' };
  }
}

/** `getBlock` and `getBlockTime`: the tier that should have the slot first, then the other one. */
export async function answerBlock(request: HistoryRequest): Promise<CallReply> {
  const { call, tiers, method } = request;
  const slot = numberIn(elementsOf(call.params)?.[0]);
  if (slot === undefined) return request.sendUnparsed();
  const firsts = firstsOf(tiers.live.map(sourceOf));
  const archives = tiers.archive.filter((backend) => mayHave(sourceOf(backend), slot));
  const isArchived = archives.length > 0;
  const sendLive = (hasNext = false) => request.send(tiers.live, { hasNext });
  const sendArchive = (hasNext = false) =>
    request.send(isArchived ? archives : tiers.archive, { params: archiveParams(call.params), hasNext });
  const liveFirst = firsts.length === 0 || firsts.some((first) => first <= slot);
  const first = await (liveFirst ? sendLive(isArchived) : sendArchive(tiers.live.length > 0));
  // A skipped slot is common: no archive is called that is known not to reach up to it.
  if (isFinal(first) || (liveFirst && !isArchived)) return first;
  const second = await (liveFirst ? sendArchive() : sendLive());
  if (isFinal(second)) return second;
  const [live, archive] = liveFirst ? [first, second] : [second, first];
  const finalized = Math.max(...tiers.live.map(({ slots }) => slots.tip.finalized));
  return replyOfNeither(request, live, archive, {
    isTime: method === 'getBlockTime',
    isNew: finalized > 0 && slot > finalized,
    isBelow: firsts.length === 0 || firsts.some((each) => slot < each),
    // A call that is too long for every archive is not worth another try.
    mayBeArchived: isArchived && archive.kind !== 'too-large',
  });
}

/** Members that archives know of the configs of `getBlock` and `getTransaction`; Superbank refuses a call for any other member. */
const KNOWN = /^(?:encoding|commitment|transactionDetails|rewards|maxSupportedTransactionVersion)$/;

function archiveParams(params: Uint8Array | undefined): Uint8Array | undefined {
  return params && withConfig(params, (name) => KNOWN.test(name));
}

/** Errors of a live node that say less about a slot than the archive's "skipped" does. */
const GIVES_WAY = new Set([-32001, -32004, -32011]);
const SKIPPED_FOR_GOOD = -32009;

/** Errors of a live node that only say that it has the thing no more, or never had it. */
const NOT_HERE = new Set([-32001, -32011]);
/** Those that say so of slots below its first one; about newer slots they are a statement about the chain. */
const NOT_HERE_BELOW = new Set([-32004, -32007]);
/** Errors by which an archive says that it could not look (Superbank's time-out, Agave `custom_error.rs`). */
const COULD_NOT_LOOK = new Set([-32000, -32005, -32019, -32603]);

/**
 * Why neither tier has a thing: it is a block's time, whose null is an answer of the node that has the
 * block; its slot is newer than what the live nodes have finalized, so that an archive cannot know it yet; the slot is not
 * known to be within what every live node has; an archive that was called may have it.
 */
export type Missing = Readonly<Record<'isTime' | 'isNew' | 'isBelow' | 'mayBeArchived', boolean>>;

function replyOfNeither(
  request: HistoryRequest,
  live: CallReply,
  archive: CallReply,
  missing: Missing,
): CallReply {
  const choice = moreCertain(classify(live), classify(archive), missing);
  return { live, archive, unavailable: request.unavailable() }[choice];
}

/** Which tier's "no" is the answer when both say no: the more certain one. */
export function moreCertain(
  live: ReplyClass,
  archive: ReplyClass,
  { isTime, isNew, isBelow, mayBeArchived }: Missing,
): 'live' | 'archive' | 'unavailable' {
  const archiveCode = archive.kind === 'lacking' ? archive.code : undefined;
  const isSkipped = archiveCode === SKIPPED_FOR_GOOD;
  if (live.kind === 'null') {
    if (archive.kind === 'unreachable') return 'unavailable';
    return archiveCode !== undefined && !isTime ? 'archive' : 'live';
  }
  // Only a live node could know: an archive's null alone would read as "never".
  if (live.kind === 'unreachable')
    return archiveCode !== undefined && !(isSkipped && isNew) ? 'archive' : 'live';
  if (live.kind !== 'lacking') return 'live';
  const couldNotLook = archive.kind === 'unreachable' || COULD_NOT_LOOK.has(archiveCode ?? 0);
  const isOpen = NOT_HERE.has(live.code) || (isBelow && NOT_HERE_BELOW.has(live.code));
  if (couldNotLook && isOpen && mayBeArchived) return 'unavailable';
  return isSkipped && !isNew && GIVES_WAY.has(live.code) ? 'archive' : 'live';
}
