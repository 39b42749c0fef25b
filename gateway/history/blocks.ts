import type { Reply } from '../upstream/forward.ts';
import { storageUnreachable } from './answers.ts';
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
import { areSkipped, findParts, holesIn } from './block-parts.ts';
import { knownHoldings } from './holding.ts';
import type { Passage } from './passage.ts';
import { elementsOf, isNull, membersOf, numberIn } from './slices.ts';

type Range = Readonly<{ start: number; end: number; config: Uint8Array | undefined }>;

/**
 * `getBlocks`: from the tier that has the range, or from several, split where one ends. Slots of the range that no
 * backend is known to have, and that the chain did not skip, are the error -32019: the list never passes over them.
 */
export async function forwardBlocks(passage: Passage): Promise<Reply> {
  const { call, tiers, ask } = passage;
  const range = rangeOf(call.params);
  if (range === undefined) return passage.through();
  const { start, end, config } = range;
  const commitment = commitmentOf(config);
  const parts = await findParts(passage, start, end);
  const [first] = parts;
  if (first !== undefined && first.from === start && first.to === end) {
    const params = paramsFrom(start, end, commitment);
    if (first.tier === 'archive') return archiveAlone(passage, first.backends, params);
    const archives = knownHoldings(tiers).filter(
      ({ tier, floor, top }) => tier === 'archive' && floor <= start && top >= end,
    );
    return liveThenArchive(
      passage,
      first.backends,
      archives.map(({ backend }) => backend),
      params,
    );
  }
  if (parts.at(-1)?.to !== end || !(await areSkipped(passage, holesIn(parts, start))))
    return storageUnreachable(call.id);
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
