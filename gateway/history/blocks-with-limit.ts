import type { Reply } from '../backend/forward.ts';
import {
  commitmentOf,
  concatenated,
  configPart,
  failedPart,
  liveThenArchive,
  isConfig,
  paramsFrom,
  RANGE_MAX,
  readSlots,
  type Slots,
} from './block-list.ts';
import { goesOn } from './block-parts.ts';
import type { Passage } from './passage.ts';
import { elementsOf, numberIn } from './slices.ts';
import { archivesWith, commonTop, floorsOf } from './tiers.ts';

type Count = Readonly<{ start: number; limit: number; config: Uint8Array | undefined }>;

/** `getBlocksWithLimit`: from the archive when it starts below the live nodes' floor, and on from them while it is short. */
export async function forwardBlocksWithLimit(passage: Passage): Promise<Reply> {
  const { call, tiers, ask } = passage;
  const count = countOf(call.params);
  if (count === undefined) return passage.through();
  const { start, limit, config } = count;
  const commitment = commitmentOf(config);
  const floor = floorsOf(tiers)?.highest;
  if (floor === undefined || start >= floor)
    return liveThenArchive(passage, paramsFrom(start, limit, commitment));
  const lists: Slots[] = [];
  let left = limit;
  let from = start;
  while (from < floor && left > 0) {
    const archives = archivesWith(tiers, from);
    const older = await readSlots(
      ask(archives, { params: paramsFrom(from, left, commitment), readable: true }),
    );
    if ('reply' in older) return failedPart(older.reply, call.id);
    lists.push(older);
    left -= older.count;
    const top = commonTop(archives);
    from = goesOn(tiers, top, from, floor) ? top + 1 : Math.max(floor, older.last + 1);
  }
  if (left <= 0) return concatenated(lists, call.id);
  const newer = await readSlots(
    ask(tiers.live, { params: paramsFrom(from, left, configPart(config)), readable: true }),
  );
  return 'reply' in newer ? newer.reply : concatenated([...lists, newer], call.id);
}

/** What well-formed parameters ask for; `undefined` when the node's own words are due. */
function countOf(params: Uint8Array | undefined): Count | undefined {
  const [first, second, config, ...more] = elementsOf(params ?? new Uint8Array()) ?? [];
  const [start, limit] = [numberIn(first), numberIn(second)];
  if (start === undefined || limit === undefined || more.length > 0 || !isConfig(config)) return undefined;
  return limit < 1 || limit > RANGE_MAX ? undefined : { start, limit, config };
}
