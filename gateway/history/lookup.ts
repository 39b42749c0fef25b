import { unreachable } from '../../shared/brand.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Backend } from '../upstream/backend.ts';
import type { Reply } from '../upstream/forward.ts';
import { type Asked, isOver, type Passage, storageUnreachable, type Verdict, verdictOf } from './request.ts';
import { elementsOf, joined, listed, membersOf, numberIn } from './slices.ts';
import { archivesWith, finalizedBy, floorsOf, mayHave, spansOf } from './tiers.ts';

/** What archives know of the configs of `getBlock` and `getTransaction`. */
const KNOWN = new Set([
  'encoding',
  'commitment',
  'transactionDetails',
  'rewards',
  'maxSupportedTransactionVersion',
]);

/**
 * The parameters with only those members of the config that archives know: Agave ignores any other, Superbank refuses
 * the call for it. Every byte left is the caller's own.
 */
function paramsForArchive(params: Uint8Array | undefined): Uint8Array | undefined {
  const [first, config] = elementsOf(params ?? NOTHING) ?? [];
  const members = config === undefined ? undefined : membersOf(config);
  if (first === undefined || members === undefined) return params;
  const known = members.filter(({ name }) => KNOWN.has(name)).map(({ whole }) => whole);
  return known.length === members.length ? params : joined(['[', first, ',{', ...listed(known), '}]']);
}

const NOTHING = new Uint8Array();

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

/** A live node that has the transaction answers well within it; later the archive is asked too. */
const HEAD_START_MS = 150;

/**
 * `getTransaction`: its slot is not known, so the live nodes are asked first and the archive when they do not have it or
 * take long. The first real answer wins and the other tier is let go of; a quick null never beats real data.
 */
export async function forwardTransaction(passage: Passage, clock: Clock): Promise<Reply> {
  const { call, tiers } = passage;
  const live = start(passage, [{ backends: tiers.live }], { localOnly: true });
  const inTime = await within(live.reply, HEAD_START_MS, clock);
  if (inTime !== undefined && isOver(verdictOf(inTime))) return inTime;
  const archive = start(passage, spansOf(tiers), { params: paramsForArchive(call.params) });
  const byLive = live.reply.then((reply) => (isOver(verdictOf(reply)) ? live : undefined));
  const byArchive = archive.reply.then((reply) => (verdictOf(reply).kind === 'found' ? archive : undefined));
  const won = (await Promise.race([byLive, byArchive])) ?? (await byLive) ?? (await byArchive);
  if (won === undefined) return neither(await live.reply, await archive.reply, call.id);
  (won === live ? archive : live).cancel();
  return won.reply;
}

function neither(live: Reply, archive: Reply, id: Uint8Array): Reply {
  const [said, then] = [verdictOf(live), verdictOf(archive)];
  if (isOver(then)) return archive;
  const mayBeArchived = archive.kind !== 'too-large';
  const choice = chooseSaying(said, then, { isTime: false, isNew: true, isBelow: false, mayBeArchived });
  if (choice === 'storage-unreachable') return storageUnreachable(id);
  return choice === 'live' ? live : archive;
}

type Attempt = Readonly<{ reply: Promise<Reply>; cancel(): void }>;

type Part = Readonly<{ backends: readonly Backend[] }>;

/** Asks a tier with a signal of its own, so that it can be let go of while the other one answers. */
function start(passage: Passage, parts: readonly Part[], asked: Asked): Attempt {
  const { signal } = passage;
  const own = new AbortController();
  const cancel = () => own.abort();
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  return { reply: askInTurn(passage, parts, { ...asked, signal: own.signal }), cancel };
}

/** The first part's reply that is not a "not here"; a null only when all of them say so. */
async function askInTurn({ ask }: Passage, parts: readonly Part[], asked: Asked): Promise<Reply> {
  let kept: Reply | undefined;
  for (const { backends } of parts) {
    const reply = await ask(backends, asked);
    const said = verdictOf(reply);
    if (isOver(said)) return reply;
    if (kept === undefined || verdictOf(kept).kind === 'null') kept = reply;
  }
  return kept ?? { kind: 'no-backend' };
}

/** The reply, or `undefined` when it has not begun after `ms`. */
async function within(reply: Promise<Reply>, ms: number, clock: Clock): Promise<Reply | undefined> {
  const late = new AbortController();
  const waited = clock.sleep(ms, late.signal).then(() => undefined);
  try {
    return await Promise.race([reply, waited]);
  } finally {
    late.abort();
  }
}

/** `getBlock` and `getBlockTime`: the tier that should have the slot first, then the other one (rpc.md 4.3). */
export async function forwardBlock(passage: Passage): Promise<Reply> {
  const { call, tiers, ask } = passage;
  const slot = numberIn(elementsOf(call.params ?? NOTHING)?.[0]);
  if (slot === undefined) return passage.through();
  const floors = floorsOf(tiers);
  const liveFirst = floors === undefined || slot >= floors.lowest;
  const askLive = () => ask(tiers.live);
  const askArchive = () => ask(archivesWith(tiers, slot), { params: paramsForArchive(call.params) });
  const first = await (liveFirst ? askLive() : askArchive());
  const said = verdictOf(first);
  // A skipped slot is common: no archive is asked that is known not to reach up to it.
  if (isOver(said) || (liveFirst && !mayHave(tiers, slot))) return first;
  const second = await (liveFirst ? askArchive() : askLive());
  const then = verdictOf(second);
  if (isOver(then)) return second;
  const [live, archive] = liveFirst ? [said, then] : [then, said];
  const finalized = finalizedBy(tiers.live);
  const choice = chooseSaying(live, archive, {
    isTime: passage.name === 'getBlockTime',
    isNew: finalized !== 0 && slot > finalized,
    isBelow: floors === undefined || slot < floors.highest,
    // To try again is no advice about a call that is too long for every archive.
    mayBeArchived: mayHave(tiers, slot) && (liveFirst ? second : first).kind !== 'too-large',
  });
  if (choice === 'storage-unreachable') return storageUnreachable(call.id);
  return (choice === 'live') === liveFirst ? first : second;
}
