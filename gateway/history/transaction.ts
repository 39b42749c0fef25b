import type { Clock } from '../../shared/clock.ts';
import type { Backend } from '../upstream/backend.ts';
import type { Reply } from '../upstream/forward.ts';
import { storageUnreachable } from './answers.ts';
import { paramsForArchive } from './archive-params.ts';
import { chooseSaying } from './choose-saying.ts';
import type { Asked, Passage } from './passage.ts';
import { spansOf } from './spans.ts';
import { isOver, verdictOf } from './verdict.ts';

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
