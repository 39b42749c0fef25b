import { CLOSE_ARRAY, COLON, COMMA, OPEN_ARRAY, afterSpace } from '../json/scan.ts';
import type { Backend } from '../upstream/backend.ts';
import type { Reply } from '../upstream/forward.ts';
import { type HistoryRequest, isFinal, outcomeOf, resultReply, unavailable } from './request.ts';
import { elementsOf, isNull, joined, listed, memberOf, membersOf, numberIn } from '../json/slices.ts';
import { archivesWithAll, areSkipped, type BlockRange, gapsIn, rangesBetween } from './tiers.ts';

/** Agave's bound on the slots of one `getBlocks` and `getBlocksWithLimit` (`rpc.rs`). */
const SLOTS_MAX = 500_000;

/**
 * The list that the caller wants: `getBlocks` has an end and no limit, `getBlocksWithLimit` a limit and no end. The one
 * that is absent is `Infinity`.
 */
type ListParams = Readonly<{ start: number; end: number; limit: number; config: Uint8Array | undefined }>;

/**
 * `getBlocks` and `getBlocksWithLimit`: from the tier that has the slots, or from several, one after the other. Slots that
 * no backend is known to have, and that the chain did not skip, are the error -32019: the list never passes over them.
 */
export async function answerBlocks(request: HistoryRequest): Promise<Reply> {
  const { params } = request.call;
  const list = request.method === 'getBlocks' ? rangeParams(params) : limitParams(params);
  if (list === undefined) return request.sendUnparsed();
  const ranges = await rangesBetween(request, list.start, list.end);
  const [first] = ranges;
  if (first?.first !== list.start || first.last !== list.end) return joinedList(request, ranges, list);
  return first.isLive ? liveList(request, first, list) : archiveList(request, first, list);
}

/** The live nodes' own answer; when they fail, the list of the archives that have all of it. */
async function liveList(request: HistoryRequest, live: BlockRange, list: ListParams): Promise<Reply> {
  const { start, end, limit } = list;
  const reply = await request.send(live.backends);
  const archives = archivesWithAll(request.tiers, start, end === Infinity ? start : end);
  if (isFinal(reply) || archives.length === 0) return reply;
  const slots = await readSlots(request, archives, paramsOf(list, false));
  if (slots.kind === 'no-list') return request.signal.aborted ? slots.reply : reply;
  return limit === Infinity || slots.count === limit ? listReply(request, [slots]) : reply;
}

/** The archives' own answer; when there is none, an error instead of a list that would look whole. */
async function archiveList(request: HistoryRequest, range: BlockRange, list: ListParams): Promise<Reply> {
  const reply = await request.send(range.backends, { params: paramsOf(list, false) });
  const { kind } = outcomeOf(reply);
  return kind === 'null' || kind === 'unreachable' ? unavailable(request) : reply;
}

async function joinedList(
  request: HistoryRequest,
  ranges: readonly BlockRange[],
  list: ListParams,
): Promise<Reply> {
  let { start, limit } = list;
  const isRange = limit === Infinity;
  const reachesEnd = ranges.at(-1)?.last === list.end;
  // A range with a gap is refused before its lists are read.
  if (isRange && !(reachesEnd && (await areSkipped(request, gapsIn(ranges, start)))))
    return unavailable(request);
  const lists: Slots[] = [];
  for (const range of ranges) {
    const { backends, isLive, last } = range;
    if (last < start) continue; // the archive before it has grown
    if (!isRange && !(await areSkipped(request, gapsIn([range], start)))) return unavailable(request);
    const rest = { ...list, start: Math.max(start, range.first), end: last, limit };
    const slots = await readSlots(request, backends, paramsOf(rest, isLive));
    if (slots.kind === 'no-list') return isLive ? slots.reply : errorOf(request, slots.reply);
    lists.push(slots);
    limit -= slots.count;
    if (limit <= 0 || last === list.end) return listReply(request, lists);
    start = Math.max(last, slots.last) + 1;
  }
  return unavailable(request);
}

/** The archive's own error, or that it cannot be reached. */
function errorOf(request: HistoryRequest, reply: Reply): Reply {
  const { kind } = outcomeOf(reply);
  return kind === 'lacking' || kind === 'refused' || kind === 'caller-left' ? reply : unavailable(request);
}

/** The range of well-formed parameters that Agave would answer. */
function rangeParams(params: Uint8Array | undefined): ListParams | undefined {
  const [first, second, third, ...more] = elementsOf(params ?? NOTHING) ?? [];
  const start = numberIn(first);
  if (start === undefined || more.length > 0) return undefined;
  // The config may be the second one (Agave `RpcBlocksConfigWrapper`).
  const isSecondConfig = second !== undefined && membersOf(second) !== undefined;
  const end = second === undefined || isNull(second) || isSecondConfig ? start + SLOTS_MAX : numberIn(second);
  const config = isSecondConfig ? second : third;
  if (end === undefined || !isConfig(config) || (isSecondConfig && third !== undefined)) return undefined;
  return end < start || end - start > SLOTS_MAX ? undefined : { start, end, limit: Infinity, config };
}

/** The number of blocks of well-formed parameters that Agave would answer. */
function limitParams(params: Uint8Array | undefined): ListParams | undefined {
  const [first, second, config, ...more] = elementsOf(params ?? NOTHING) ?? [];
  const [start, limit] = [numberIn(first), numberIn(second)];
  if (start === undefined || limit === undefined || more.length > 0 || !isConfig(config)) return undefined;
  return limit < 1 || limit > SLOTS_MAX ? undefined : { start, end: Infinity, limit, config };
}

const NOTHING = new Uint8Array();

function isConfig(json: Uint8Array | undefined): boolean {
  return json === undefined || isNull(json) || membersOf(json) !== undefined;
}

/** Live nodes get the caller's config, archives nothing but its commitment. */
function paramsOf({ start, end, limit, config }: ListParams, isLive: boolean): Uint8Array {
  const rest = isLive ? config : archiveConfig(config);
  const bound = limit === Infinity ? end : limit;
  return joined([`[${start},${bound}`, ...(rest === undefined ? [] : [',', rest]), ']']);
}

function archiveConfig(config: Uint8Array | undefined): Uint8Array | undefined {
  const commitment = config === undefined ? undefined : memberOf(config, 'commitment');
  const isAbsent = commitment === undefined || isNull(commitment);
  return isAbsent ? undefined : joined(['{"commitment":', commitment, '}']);
}

/** A list of slots: the text inside its brackets, how many there are and the last one. */
type Slots = Readonly<{ kind: 'slots'; inside: Uint8Array; count: number; last: number }>;

async function readSlots(
  { read }: HistoryRequest,
  backends: readonly Backend[],
  params: Uint8Array,
): Promise<Slots | Readonly<{ kind: 'no-list'; reply: Reply }>> {
  const reply = await read(backends, { params });
  return (reply.kind === 'whole' ? slotsIn(reply.bytes) : undefined) ?? { kind: 'no-list', reply };
}

/**
 * The list of an answer, found by the first `"result"`, which no escaped id can spell, and counted by its commas: to
 * take half a million numbers apart would hold up every other call for a tenth of a second.
 */
function slotsIn(answer: Uint8Array<ArrayBuffer>): Slots | undefined {
  const named = Buffer.from(answer.buffer, answer.byteOffset, answer.length).indexOf(RESULT);
  const colon = afterSpace(answer, named + RESULT.length);
  const open = afterSpace(answer, colon + 1);
  if (named === -1 || answer[colon] !== COLON || answer[open] !== OPEN_ARRAY) return undefined;
  let commas = 0;
  let last = 0;
  for (let i = open + 1; ; i++) {
    const byte = answer[i] ?? 0;
    if (byte >= ZERO && byte <= NINE) last = last * 10 + byte - ZERO;
    else if (byte === COMMA) {
      commas++;
      last = 0;
    } else if (byte === CLOSE_ARRAY) {
      const inside = answer.subarray(open + 1, i);
      return commas === 0 && afterSpace(answer, open + 1) === i
        ? { kind: 'slots', inside, count: 0, last: -1 }
        : { kind: 'slots', inside, count: commas + 1, last };
    } else if (afterSpace(answer, i) === i) return undefined;
  }
}

const RESULT = Buffer.from('"result"');
const ZERO = 0x30;
const NINE = 0x39;

/** Lists as one answer, every slot in its own bytes. */
function listReply(request: HistoryRequest, lists: readonly Slots[]): Reply {
  const filled = lists.filter(({ count }) => count > 0).map(({ inside }) => inside);
  return resultReply(['[', ...listed(filled), ']'], request);
}
