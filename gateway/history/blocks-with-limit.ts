import type { Reply } from '../backend/forward.ts';
import {
  commitmentOf,
  concatenated,
  failedPart,
  hotThenArchive,
  isConfig,
  paramsFrom,
  RANGE_MAX,
  readSlots,
} from './block-list.ts';
import type { Passage } from './passage.ts';
import { elementsOf, numberIn } from './slices.ts';
import { archivesWith, floorsOf } from './tiers.ts';

type Count = Readonly<{ start: number; limit: number; config: Uint8Array | undefined }>;

/** `getBlocksWithLimit`: from the archive when it starts below the live nodes' floor, and on from them while it is short. */
export async function forwardBlocksWithLimit(passage: Passage): Promise<Reply> {
  const { call, tiers, ask } = passage;
  const count = countOf(call.params);
  if (count === undefined) return passage.through();
  const { start, limit, config } = count;
  const params = paramsFrom(start, limit, commitmentOf(config));
  const floor = floorsOf(tiers)?.highest;
  if (floor === undefined || start >= floor) return hotThenArchive(passage, params);
  const archives = archivesWith(tiers, start);
  const older = await readSlots(ask(archives, { params, readable: true }));
  if ('reply' in older) return failedPart(older.reply, call.id);
  if (older.count >= limit) return concatenated(older, NO_SLOTS, call.id);
  const from = Math.max(floor, older.last + 1);
  const newer = await readSlots(
    ask(tiers.hot, {
      params: paramsFrom(from, limit - older.count, config === undefined ? [] : [',', config]),
      readable: true,
    }),
  );
  return 'reply' in newer ? newer.reply : concatenated(older, newer, call.id);
}

const NO_SLOTS = { inside: new Uint8Array(), count: 0, last: -1 };

/** What well-formed parameters ask for; `undefined` when the node's own words are due. */
function countOf(params: Uint8Array | undefined): Count | undefined {
  const [first, second, config, ...more] = elementsOf(params ?? new Uint8Array()) ?? [];
  const [start, limit] = [numberIn(first), numberIn(second)];
  if (start === undefined || limit === undefined || more.length > 0 || !isConfig(config)) return undefined;
  return limit < 1 || limit > RANGE_MAX ? undefined : { start, limit, config };
}
