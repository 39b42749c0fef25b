import { CLOSE_ARRAY, COMMA, isNull, laterTurn } from '../json/scan.ts';
import type { Backend } from '../upstream/backend.ts';
import type { CallReply } from '../upstream/failover.ts';
import { arrayOf, elementsOf, joined, memberOf, membersOf, numberIn } from '../json/slices.ts';
import {
  type BlockRange,
  gapsIn,
  type HistoryRequest,
  isFinal,
  isKnown,
  mayHave,
  classify,
  sourceOf,
} from './tiers.ts';

/** Agave's bound on the slots of one `getBlocks` and `getBlocksWithLimit` (`rpc.rs`). */
const SLOTS_MAX = 500_000;

/** The list that the caller wants: `getBlocks` has no limit and `getBlocksWithLimit` no end; that one is `Infinity`. */
type ListParams = Readonly<{ start: number; end: number; limit: number; config: Uint8Array | undefined }>;

/** `getBlocks` and `getBlocksWithLimit` across tiers; slots that no backend has are -32019, never passed over. */
export async function answerBlocks(request: HistoryRequest): Promise<CallReply> {
  const list = listParams(request);
  if (list === undefined) return request.sendUnparsed();
  const ranges = await request.rangesBetween(list.start, list.end);
  const [range] = ranges;
  const isLive = range?.isLive && range.first === list.start && range.last === list.end;
  return isLive ? liveList(request, range, list) : joinedList(request, ranges, list);
}

/** The live nodes' own answer; when they fail, the list of the archives that have all of it. */
async function liveList(request: HistoryRequest, live: BlockRange, list: ListParams): Promise<CallReply> {
  const { start, end, limit } = list;
  const ends = end === Infinity ? [start] : [start, end];
  const archives = request.tiers.archive.filter((backend) => {
    const source = sourceOf(backend);
    return isKnown(source) && ends.every((slot) => mayHave(source, slot));
  });
  const reply = await request.send(live.backends, { hasNext: archives.length > 0 });
  if (isFinal(reply) || archives.length === 0) return reply;
  const { slots } = await readSlots(request, archives, paramsOf(list, false));
  const isWhole = slots !== undefined && (limit === Infinity || slots.count === limit);
  return isWhole ? listReply(request, [slots]) : reply;
}

async function joinedList(request: HistoryRequest, ranges: readonly BlockRange[], list: ListParams) {
  let { start, limit } = list;
  const isRange = limit === Infinity;
  const reachesEnd = ranges.at(-1)?.last === list.end;
  // A range with a gap is refused before its lists are read.
  if (isRange && !(reachesEnd && (await request.areSkipped(gapsIn(ranges, start)))))
    return request.unavailable();
  const lists: Slots[] = [];
  for (const range of ranges) {
    const { backends, isLive, last } = range;
    if (last < start) continue; // the archive before it has grown
    if (!isRange && !(await request.areSkipped(gapsIn([range], start)))) return request.unavailable();
    const rest = { ...list, start: Math.max(start, range.first), end: last, limit };
    const { reply, slots } = await readSlots(request, backends, paramsOf(rest, isLive));
    if (slots === undefined) {
      // An archive's own error, or that it cannot be reached.
      const { kind } = classify(reply);
      return isLive || kind === 'lacking' || kind === 'refused' ? reply : request.unavailable();
    }
    lists.push(slots);
    limit -= slots.count;
    if (limit <= 0 || last === list.end) return listReply(request, lists);
    start = Math.max(last, slots.last) + 1;
  }
  return request.unavailable();
}

/** The list of well-formed parameters that Agave would answer. */
function listParams({ call, method }: HistoryRequest): ListParams | undefined {
  const [first, second, third, ...more] = elementsOf(call.params) ?? [];
  const start = numberIn(first);
  const isRange = method === 'getBlocks';
  // The config may take the place of the end (Agave `RpcBlocksConfigWrapper`).
  const hasNoEnd = isRange && membersOf(second) !== undefined;
  const config = hasNoEnd ? second : third;
  const isOdd = more.length > 0 || (hasNoEnd && third !== undefined);
  const isConfig = config === undefined || isNull(config) || membersOf(config) !== undefined;
  if (start === undefined || isOdd || !isConfig) return undefined;
  if (!isRange) {
    const limit = numberIn(second) ?? 0;
    return limit < 1 || limit > SLOTS_MAX ? undefined : { start, end: Infinity, limit, config };
  }
  const isOpen = hasNoEnd || second === undefined || isNull(second);
  const end = isOpen ? start + SLOTS_MAX : (numberIn(second) ?? -1);
  return end < start || end - start > SLOTS_MAX ? undefined : { start, end, limit: Infinity, config };
}

/** Live nodes get the caller's config, archives nothing but its commitment. */
function paramsOf({ start, end, limit, config }: ListParams, isLive: boolean): Uint8Array {
  const commitment = memberOf(config, 'commitment');
  const isAbsent = commitment === undefined || isNull(commitment);
  const archived = isAbsent ? [] : [',{"commitment":', commitment, '}'];
  const given = config === undefined ? [] : [',', config];
  return joined([`[${start},${limit === Infinity ? end : limit}`, ...(isLive ? given : archived), ']']);
}

/** A list of slots: the text inside its brackets, how many there are and the last one. */
type Slots = Readonly<{ inside: Uint8Array; count: number; last: number }>;

/** `slots` is `undefined` when the reply is no list. */
async function readSlots(request: HistoryRequest, backends: readonly Backend[], params: Uint8Array) {
  const reply = await request.read(backends, { params });
  return { reply, slots: reply.kind === 'whole' ? await slotsIn(reply.bytes) : undefined };
}

const LIST = /"result"\s*:\s*\[/;
/** An answer's list begins within so many bytes. */
const HEAD_BYTES = 512;
/** Bytes that are searched in one turn of the loop: half a millisecond. */
const SLICE_BYTES = 524_288;

/** The list of an answer, counted by its commas and in slices: half a million numbers taken apart hold up all calls for 0.1 s. */
async function slotsIn(answer: Uint8Array): Promise<Slots | undefined> {
  const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.length);
  const found = LIST.exec(bytes.toString('latin1', 0, HEAD_BYTES));
  const start = found === null ? -1 : found.index + found[0].length;
  const end = bytes.indexOf(CLOSE_ARRAY, start);
  if (start === -1 || end === -1) return undefined;
  const inside = bytes.subarray(start, end);
  let commas = 0;
  let last = -1;
  for (let from = 0; from < inside.length; from += SLICE_BYTES) {
    if (from > 0) await laterTurn();
    const to = Math.min(inside.length, from + SLICE_BYTES);
    for (let i = from; i < to; i++) {
      const c = inside[i] ?? 0;
      if (c === COMMA) {
        commas++;
        last = i;
      } else if (c > 0x39 || (c < 0x30 && c > 0x20)) return undefined;
    }
  }
  const text = inside.toString('latin1', last + 1).trim();
  if (text !== '') return { inside, count: commas + 1, last: Number(text) };
  return commas === 0 ? { inside, count: 0, last: -1 } : undefined;
}

function listReply(request: HistoryRequest, lists: readonly Slots[]): CallReply {
  const filled = lists.filter(({ count }) => count > 0).map(({ inside }) => inside);
  return request.reply(arrayOf(filled));
}
