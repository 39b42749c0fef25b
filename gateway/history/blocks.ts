import type { Reply } from '../backend/forward.ts';
import {
  archiveAlone,
  commitmentOf,
  concatenated,
  failedPart,
  hotThenArchive,
  isConfig,
  paramsFrom,
  RANGE_MAX,
  readSlots,
  seamOf,
} from './block-list.ts';
import type { Passage } from './passage.ts';
import { elementsOf, isNull, membersOf, numberIn } from './slices.ts';
import { archivesWith, floorsOf, topOf } from './tiers.ts';

type Range = Readonly<{ start: number; end: number; config: Uint8Array | undefined }>;

/** `getBlocks`: from the tier that has the range, or from both, split above the live nodes' floor. */
export async function forwardBlocks(passage: Passage): Promise<Reply> {
  const { call, tiers, ask } = passage;
  const range = rangeOf(call.params);
  if (range === undefined) return passage.through();
  const { start, end, config } = range;
  const commitment = commitmentOf(config);
  const floor = floorsOf(tiers)?.highest;
  if (floor === undefined || start >= floor)
    return hotThenArchive(passage, paramsFrom(start, end, commitment));
  const archives = archivesWith(tiers, start);
  const seam = seamOf(floor, archives);
  if (end < seam || end <= topOf(archives))
    return archiveAlone(passage, archives, paramsFrom(start, end, commitment));
  const [older, newer] = await Promise.all([
    readSlots(ask(archives, { params: paramsFrom(start, seam - 1, commitment), readable: true })),
    readSlots(
      ask(tiers.hot, {
        params: paramsFrom(seam, end, config === undefined ? [] : [',', config]),
        readable: true,
      }),
    ),
  ]);
  if ('reply' in newer) return newer.reply;
  return 'reply' in older ? failedPart(older.reply, call.id) : concatenated(older, newer, call.id);
}

/** The range of well-formed parameters that Agave would answer; `undefined` when its own words are due. */
function rangeOf(params: Uint8Array | undefined): Range | undefined {
  const [first, second, third, ...more] = elementsOf(params ?? new Uint8Array()) ?? [];
  const start = numberIn(first);
  if (start === undefined || more.length > 0) return undefined;
  // The config may stand second (Agave `RpcBlocksConfigWrapper`).
  const isSecondConfig = second !== undefined && membersOf(second) !== undefined;
  const end = second === undefined || isNull(second) || isSecondConfig ? start + RANGE_MAX : numberIn(second);
  const config = isSecondConfig ? second : third;
  if (end === undefined || !isConfig(config) || (isSecondConfig && third !== undefined)) return undefined;
  return end < start || end - start > RANGE_MAX ? undefined : { start, end, config };
}
