import type { Reply } from '../backend/forward.ts';
import {
  archiveAlone,
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
import { partsOf } from './block-parts.ts';
import type { Passage } from './passage.ts';
import { elementsOf, isNull, membersOf, numberIn } from './slices.ts';
import { floorsOf } from './tiers.ts';

type Range = Readonly<{ start: number; end: number; config: Uint8Array | undefined }>;

/** `getBlocks`: from the tier that has the range, or from several, split where one ends. */
export async function forwardBlocks(passage: Passage): Promise<Reply> {
  const { call, tiers, ask } = passage;
  const range = rangeOf(call.params);
  if (range === undefined) return passage.through();
  const { start, end, config } = range;
  const commitment = commitmentOf(config);
  const floor = floorsOf(tiers)?.highest;
  if (floor === undefined || start >= floor)
    return liveThenArchive(passage, paramsFrom(start, end, commitment));
  const parts = partsOf(tiers, floor, start, end);
  const [first] = parts;
  if (first !== undefined && parts.length === 1)
    return archiveAlone(passage, first.backends, paramsFrom(start, end, commitment));
  const asked = parts.map(({ tier, backends, from, to }) => {
    const rest = tier === 'archive' ? commitment : configPart(config);
    return readSlots(ask(backends, { params: paramsFrom(from, to, rest), readable: true }));
  });
  const lists: Slots[] = [];
  for (const [i, list] of (await Promise.all(asked)).entries()) {
    if ('reply' in list) return parts[i]?.tier === 'live' ? list.reply : failedPart(list.reply, call.id);
    lists.push(list);
  }
  return concatenated(lists, call.id);
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
