import type { Reply } from '../upstream/forward.ts';
import { storageUnreachable } from './answers.ts';
import {
  commitmentOf,
  concatenated,
  configPart,
  failedPart,
  isConfig,
  paramsFrom,
  RANGE_MAX,
  readSlots,
  type Slots,
} from './block-list.ts';
import { type BlockPart, findParts, isHoleSkipped } from './block-parts.ts';
import { knownHoldings } from './holding.ts';
import type { Passage } from './passage.ts';
import { elementsOf, numberIn } from './slices.ts';
import { isOver, verdictOf } from './verdict.ts';

type Count = Readonly<{ start: number; limit: number; config: Uint8Array | undefined }>;

/**
 * `getBlocksWithLimit`: from the archives that have its first slots, one after the other, and on from the live nodes while
 * it is short. Slots on the way that no backend is known to have, and that the chain did not skip, are the error
 * -32019: the list never passes over them.
 */
export async function forwardBlocksWithLimit(passage: Passage): Promise<Reply> {
  const count = countOf(passage.call.params);
  if (count === undefined) return passage.through();
  const parts = await findParts(passage, count.start, Infinity);
  const [first] = parts;
  return first?.tier === 'live' && first.from === count.start
    ? liveOrFullList(passage, first, count)
    : listFrom(passage, parts, count);
}

/** The live nodes' own answer; when they fail, the archives' list if it has the whole number. */
async function liveOrFullList({ ask, call, tiers }: Passage, part: BlockPart, count: Count): Promise<Reply> {
  const { start, limit, config } = count;
  const live = await ask(part.backends);
  const archives = knownHoldings(tiers)
    .filter(({ tier, floor, top }) => tier === 'archive' && floor <= start && start <= top)
    .map(({ backend }) => backend);
  if (isOver(verdictOf(live)) || archives.length === 0) return live;
  const params = paramsFrom(start, limit, commitmentOf(config));
  const list = await readSlots(ask(archives, { params, readable: true }));
  if ('reply' in list) return list.reply.kind === 'caller-left' ? list.reply : live;
  return list.count === limit ? concatenated([list], call.id) : live;
}

async function listFrom(passage: Passage, parts: readonly BlockPart[], count: Count): Promise<Reply> {
  const { call, ask } = passage;
  const { start, limit, config } = count;
  const lists: Slots[] = [];
  let left = limit;
  let from = start;
  for (const part of parts) {
    if (part.to < from) continue; // an archive before it has grown
    if (part.from > from && !(await isHoleSkipped(passage, { from, above: part })))
      return storageUnreachable(call.id);
    const isLive = part.tier === 'live';
    const rest = isLive ? configPart(config) : commitmentOf(config);
    const params = paramsFrom(Math.max(from, part.from), left, rest);
    const list = await readSlots(ask(part.backends, { params, readable: true }));
    if ('reply' in list) return isLive ? list.reply : failedPart(list.reply, call.id);
    lists.push(list);
    left -= list.count;
    if (left <= 0 || part.to === Infinity) return concatenated(lists, call.id);
    from = Math.max(part.to, list.last) + 1;
  }
  return storageUnreachable(call.id);
}

/** What well-formed parameters ask for; `undefined` when the node's own words are due. */
function countOf(params: Uint8Array | undefined): Count | undefined {
  const [first, second, config, ...more] = elementsOf(params ?? new Uint8Array()) ?? [];
  const [start, limit] = [numberIn(first), numberIn(second)];
  if (start === undefined || limit === undefined || more.length > 0 || !isConfig(config)) return undefined;
  return limit < 1 || limit > RANGE_MAX ? undefined : { start, limit, config };
}
