import type { Backend } from '../upstream/backend.ts';
import type { Reply } from '../upstream/forward.ts';
import {
  isOver,
  type Passage,
  readSlots,
  resultAnswer,
  type Slots,
  storageUnreachable,
  verdictOf,
} from './request.ts';
import { elementsOf, isNull, joined, listed, memberOf, membersOf, numberIn } from './slices.ts';
import { areSkipped, type BlockPart, findParts, holesIn, isHoleSkipped, knownHoldings } from './tiers.ts';

/** Agave's bound on the slots of one `getBlocks` and `getBlocksWithLimit` (`rpc.rs`). */
const RANGE_MAX = 500_000;

/** The config as archives take it: nothing but the commitment. */
function commitmentOf(config: Uint8Array | undefined): readonly (string | Uint8Array)[] {
  const commitment = config === undefined ? undefined : memberOf(config, 'commitment');
  return commitment === undefined || isNull(commitment) ? [] : [',{"commitment":', commitment, '}'];
}

/** The config as the caller wrote it. */
function configPart(config: Uint8Array | undefined): readonly (string | Uint8Array)[] {
  return config === undefined ? [] : [',', config];
}

/** Whether a value is what may stand where a config stands. */
function isConfig(json: Uint8Array | undefined): boolean {
  return json === undefined || isNull(json) || membersOf(json) !== undefined;
}

/** The live nodes have all of it; only when they fail are archives asked, where some have all of it too. */
async function liveThenArchive(
  { ask }: Passage,
  backends: readonly Backend[],
  archives: readonly Backend[],
  archiveParams: Uint8Array,
): Promise<Reply> {
  const live = await ask(backends);
  if (isOver(verdictOf(live)) || archives.length === 0) return live;
  const archive = await ask(archives, { params: archiveParams });
  const { kind } = verdictOf(archive);
  return kind === 'found' || kind === 'caller-left' ? archive : live;
}

/** The archive's own answer; when it has none, an error instead of a list that would look whole. */
async function archiveAlone(
  { ask, call }: Passage,
  archives: readonly Backend[],
  params: Uint8Array,
): Promise<Reply> {
  const reply = await ask(archives, { params });
  const { kind } = verdictOf(reply);
  return kind === 'null' || kind === 'unreachable' ? storageUnreachable(call.id) : reply;
}

/** Lists as one answer, every slot in its own bytes. */
function concatenated(lists: readonly Slots[], id: Uint8Array): Reply {
  const filled = lists.filter(({ count }) => count > 0).map(({ inside }) => inside);
  return resultAnswer(['[', ...listed(filled), ']'], id);
}

/** The archive's part of a list that cannot be told: its own error, or that it cannot be reached. */
function failedPart(reply: Reply, id: Uint8Array): Reply {
  const { kind } = verdictOf(reply);
  return kind === 'null' || kind === 'unreachable' || kind === 'found' ? storageUnreachable(id) : reply;
}

/** `[FIRST,SECOND,CONFIG…]` in bytes. */
function paramsFrom(
  first: Uint8Array | number,
  second: Uint8Array | number,
  config: readonly (string | Uint8Array)[],
): Uint8Array {
  const value = (part: Uint8Array | number) => (typeof part === 'number' ? String(part) : part);
  return joined(['[', value(first), ',', value(second), ...config, ']']);
}

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
