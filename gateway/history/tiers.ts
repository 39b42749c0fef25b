import { type ProfileName, PROFILES } from '../../shared/config/profiles.ts';
import type { Call } from '../request/envelope.ts';
import { type Backend, isLiveNode } from '../upstream/backend.ts';
import { failureOf } from '../upstream/failure.ts';
import type { Reply } from '../upstream/forward.ts';
import { SMALL_BODY_BYTES_MAX, decodeSmallBody } from '../upstream/response-reader.ts';
import type { Gap } from '../upstream/selection.ts';
import { elementsOf, isNull, joined, memberOf, numberIn } from './slices.ts';

/** The backends of a history method: live nodes, which hold some days, and archives, which hold the rest. */
export type Tiers = Readonly<{ live: readonly Backend[]; archive: readonly Backend[] }>;

/** What a request to backends changes in the caller's call. */
export type Changes = Readonly<{
  method?: string;
  params?: Uint8Array | undefined;
  /** Excludes the long-term storage behind a node. */
  localOnly?: boolean;
  signal?: AbortSignal;
}>;

/** One call of a history method, which may need several backends. */
export type HistoryRequest = Readonly<{
  call: Call;
  /** The method's name to backends. */
  method: string;
  tiers: Tiers;
  signal: AbortSignal;
  /** Sends the call to the best of some backends. Never rejects. */
  send(backends: readonly Backend[], changes?: Changes): Promise<Reply>;
  /** The same, with the answer uncompressed and read to its end. One that is cut or above 8 MiB is `no-backend`. */
  read(backends: readonly Backend[], changes: Changes): Promise<Exclude<Reply, { kind: 'stream' }>>;
}>;

/** Sends parameters that are not understood to live nodes, whose errors are Agave's; archives accept some of them. */
export function sendUnparsed({ tiers: { live, archive }, send }: HistoryRequest): Promise<Reply> {
  return send(live.length > 0 ? live : archive);
}

/** Reads the result of another call; `undefined`: it has none. */
export async function readResult(
  { read }: HistoryRequest,
  backends: readonly Backend[],
  changes: Changes,
): Promise<Uint8Array | undefined> {
  const reply = await read(backends, changes);
  return reply.kind === 'whole' ? memberOf(reply.bytes, 'result') : undefined;
}

/** `{"jsonrpc":"2.0","result":RESULT,"id":ID}` of the result's pieces, the id verbatim. */
export function resultReply(result: readonly (string | Uint8Array)[], { call }: HistoryRequest): Reply {
  const bytes = joined(['{"jsonrpc":"2.0","result":', ...result, ',"id":', call.id, '}']);
  return { kind: 'whole', bytes, encoding: undefined };
}

/** Agave's code and text (`custom_error.rs`). */
const STORAGE_UNREACHABLE =
  '"error":{"code":-32019,"message":"Failed to query long-term storage; please try again"}';

/** The answer when a part of history is missing, so that what the others have does not look like all of it. */
export function unavailable({ call }: HistoryRequest): Reply {
  const bytes = joined([`{"jsonrpc":"2.0",${STORAGE_UNREACHABLE},"id":`, call.id, '}']);
  return { kind: 'whole', bytes, encoding: undefined };
}

/** What a tier's reply says about the other tier. */
export type Outcome =
  | { readonly kind: 'found' }
  /** An error that the other tier would repeat, or nobody waits for an answer. */
  | { readonly kind: 'refused' }
  /** "Not here", which may be "not at all". */
  | { readonly kind: 'null' }
  /** An error that the other tier may not have. */
  | { readonly kind: 'lacking'; readonly code: number }
  /** No backend of the tier could answer. */
  | { readonly kind: 'unreachable' };

/** By Agave's `custom_error.rs`; -32000 is Superbank's time-out. */
const LACKING = new Set([
  -32000, -32001, -32004, -32005, -32007, -32009, -32011, -32014, -32019, -32020, -32021, -32601, -32603,
]);

/** Classifies a tier's reply. A stream is never a null, because nulls are short. */
export function outcomeOf(reply: Reply): Outcome {
  if (reply.kind === 'stream') return { kind: 'found' };
  if (reply.kind === 'caller-left') return { kind: 'refused' };
  if (reply.kind !== 'whole') return { kind: 'unreachable' };
  const bytes = reply.bytes.length > SMALL_BODY_BYTES_MAX ? undefined : decodeSmallBody(reply);
  if (bytes === undefined) return { kind: 'found' };
  const failure = failureOf(bytes);
  if (failure === undefined) return { kind: isNull(memberOf(bytes, 'result')) ? 'null' : 'found' };
  const { code, message } = failure;
  const isLacking = LACKING.has(code) || message.startsWith('BigTable query failed');
  return isLacking ? { kind: 'lacking', code } : { kind: 'refused' };
}

/** Whether the reply is the answer, whatever the other tier has. */
export function isFinal(reply: Reply): boolean {
  const { kind } = outcomeOf(reply);
  return kind === 'found' || kind === 'refused';
}

/** Backends of one tier, any of which gives the same answer, and the slots of which they have every block. */
export type Source = Readonly<{
  backends: readonly Backend[];
  isLive: boolean;
  profile: ProfileName;
  /** `undefined`: the probes have not shown it. */
  first: number | undefined;
  /** Included. A live node's is `Infinity`. */
  last: number | undefined;
}>;

/** A source whose ends are known, or the part of it that is wanted. */
export type BlockRange = Source & Readonly<{ first: number; last: number }>;

/** Its profile and its lanes decide on a backend's tier. */
export function tiersOf(backends: readonly Backend[]): Tiers {
  return {
    live: backends.filter(({ config }) => isLiveNode(config)),
    archive: backends.filter(({ config }) => !isLiveNode(config)),
  };
}

/** What the probes have shown of a backend. */
export function sourceOf(backend: Backend): Source {
  const { profile } = backend.config;
  const { firstLocalBlock: local, firstBlock, tip } = backend.slots;
  const source = { backends: [backend], profile };
  if (isLiveNode(backend.config))
    return { ...source, isLive: true, first: fromGenesis(local), last: Infinity };
  // A node's own first block is not that of the BigTable behind it.
  const first = firstBlock ?? (PROFILES[profile].bigtable && local !== undefined ? 0 : local);
  const last = Math.max(...Object.values(tip)) || undefined;
  return { ...source, isLive: false, first: fromGenesis(first), last };
}

/** Slot 0 is genesis and has no block, so a backend that has slot 1 has everything. */
function fromGenesis(firstBlock: number | undefined): number | undefined {
  return firstBlock === 1 ? 0 : firstBlock;
}

/** Whether both ends are known. */
export function isKnown(source: Source): source is BlockRange {
  return source.first !== undefined && source.last !== undefined;
}

/** Whether a source may have the slot: it does not when the slot is outside what is known of it. */
export function mayHave({ first = 0, last = Infinity }: Source, slot: number): boolean {
  return first <= slot && slot <= last;
}

/** The archives, those that begin last first. Archives of one profile that begin alike are one source. */
export function distinctArchives({ archive }: Tiers): readonly Source[] {
  const alike = Map.groupBy(archive.map(sourceOf), (source) =>
    isKnown(source) ? `${source.profile} ${source.first}` : source,
  );
  const sources = [...alike.values()].map((group) =>
    group.reduce((all, { backends, last = Infinity }) => ({
      ...all,
      backends: [...all.backends, ...backends],
      last: Math.min(all.last ?? Infinity, last),
    })),
  );
  return sources.toSorted((a, b) => (b.first ?? -1) - (a.first ?? -1));
}

/** The first slots of sources, as far as they are known. */
export function firstsOf(sources: readonly Source[]): readonly number[] {
  return sources.flatMap(({ first }) => first ?? []);
}

/** From there on every live node has every block; `Infinity`: there is no live node. */
function highestLiveFirst(ranges: readonly BlockRange[]): number {
  const firsts = firstsOf(ranges.filter(({ isLive }) => isLive));
  return firsts.length === 0 ? Infinity : Math.max(...firsts);
}

/** The first block of backends at or after a slot; `undefined`: none, or they do not say. */
export async function firstBlockFrom(
  request: HistoryRequest,
  { backends, isLive }: Pick<Source, 'backends' | 'isLive'>,
  slot: number,
): Promise<number | undefined> {
  const params = joined([`[${slot},1]`]);
  const list = await readResult(request, backends, {
    method: 'getBlocksWithLimit',
    params,
    localOnly: isLive,
  });
  const [block, ...more] = (list === undefined ? undefined : elementsOf(list)) ?? [];
  return more.length > 0 ? undefined : numberIn(block);
}

/** The first slot of a source: found by a list of blocks where the probes did not find it. `undefined`: not known. */
export async function firstSlot(request: HistoryRequest, source: Source): Promise<number | undefined> {
  return source.first ?? fromGenesis(await firstBlockFrom(request, source, 0));
}

/** Slots that no backend is known to have, from `from` up to where the next range begins. */
type SlotGap = Readonly<{ from: number; above: Above }>;

/** Backends that have every block from slot `first` on. */
export type Above = Pick<BlockRange, 'backends' | 'isLive' | 'first'>;

/** Whether the chain skipped every slot of the gaps, so that they leave no block out. */
export async function areSkipped(request: HistoryRequest, gaps: readonly SlotGap[]): Promise<boolean> {
  const skipped = await Promise.all(gaps.map((gap) => isSkipped(request, gap)));
  return skipped.every(Boolean);
}

/** The first block above the gap names its parent. */
async function isSkipped(request: HistoryRequest, { from, above }: SlotGap): Promise<boolean> {
  const block = await firstBlockFrom(request, above, above.first);
  if (block === undefined) return false;
  const params = joined([`[${block},${HEAD_ONLY}]`]);
  const changes = { method: 'getBlock', params, localOnly: above.isLive };
  const head = await readResult(request, above.backends, changes);
  const parent = head === undefined ? undefined : numberIn(memberOf(head, 'parentSlot'));
  return parent !== undefined && parent < from;
}

const HEAD_ONLY = '{"transactionDetails":"none","rewards":false,"maxSupportedTransactionVersion":0}';

/**
 * Nodes clean up in steps, also between two probes, and a list does not say what it lacks: up to so many slots above its
 * first one, a live node is not called for blocks that an archive has.
 */
const MARGIN_SLOTS = 1_024;

/**
 * Divides the slots from `start` to `end` among the sources that have them, in order: archives below the first slot of
 * the live nodes, then the live nodes. Where a range does not begin after the one before it, no backend has the slots.
 */
function divide(sources: readonly BlockRange[], start: number, end: number): readonly BlockRange[] {
  const liveFirst = highestLiveFirst(sources);
  const ranges: BlockRange[] = [];
  for (let first = start; first <= end && first < Infinity;) {
    const able = sources.filter((source) => mayHave(source, first));
    const archives = first < liveFirst ? able.filter(({ isLive }) => !isLive) : [];
    const chosen = archives.length > 0 ? archives : able.filter(({ isLive }) => isLive);
    const [one] = chosen;
    if (one === undefined) {
      // The lowest slot above that any backend has.
      first = Math.min(...firstsOf(sources).filter((each) => each > first));
      continue;
    }
    const top = Math.min(...chosen.map(({ last }) => last));
    const last = top >= end ? end : Math.min(top, liveFirst + MARGIN_SLOTS - 1);
    ranges.push({ ...one, backends: chosen.flatMap(({ backends }) => backends), first, last });
    first = last + 1;
  }
  return ranges;
}

/** The gaps before and between ranges. Slots above the last range are no gap, because no backend is known beyond them. */
export function gapsIn(ranges: readonly BlockRange[], start: number): readonly SlotGap[] {
  return ranges.flatMap((above, i) => {
    const from = i === 0 ? start : (ranges[i - 1]?.last ?? start) + 1;
    return from < above.first ? [{ from, above }] : [];
  });
}

/**
 * The sources of which both ends are known. Those that the probes did not find are asked for: a block at or after `upTo`
 * shows that an archive reaches that far. A backend that does not answer this either is left out.
 */
async function knownSources(request: HistoryRequest, upTo: number): Promise<readonly BlockRange[]> {
  const { live, archive } = request.tiers;
  const lives = await Promise.all(live.map((backend) => complete(backend, upTo)));
  const known = lives.filter(isKnown);
  const needed = Math.max(0, Math.min(upTo, highestLiveFirst(known) - 1));
  const archives = await Promise.all(archive.map((backend) => complete(backend, needed)));
  return [...known, ...archives.filter(isKnown)];

  async function complete(backend: Backend, slot: number): Promise<Source> {
    const source = sourceOf(backend);
    const reaches = () => (slot === Infinity ? undefined : firstBlockFrom(request, source, slot));
    const [first, last] = await Promise.all([firstSlot(request, source), source.last ?? reaches()]);
    return { ...source, first, last };
  }
}

/** Slots from `start` to `end` by the backends that are known to have them (`divide`). */
export async function rangesBetween(
  request: HistoryRequest,
  start: number,
  end: number,
): Promise<readonly BlockRange[]> {
  const sources = [...request.tiers.live, ...request.tiers.archive].map(sourceOf);
  const ranges = divide(sources.filter(isKnown), start, end);
  const isWhole = ranges.at(-1)?.last === end && gapsIn(ranges, start).length === 0;
  return isWhole || sources.every(isKnown) ? ranges : divide(await knownSources(request, end), start, end);
}

/**
 * Whether the backends together have every slot from the lowest one that any has. Only then does it mean something that
 * none of them knows a cursor: otherwise it may be in slots that none of them has.
 */
export async function haveWholeChain(request: HistoryRequest): Promise<boolean> {
  const { live, archive } = request.tiers;
  const sources = await knownSources(request, Infinity);
  if (sources.length < live.length + archive.length) return false;
  const start = Math.min(...firstsOf(sources));
  const end = live.length > 0 ? highestLiveFirst(sources) : Math.max(...sources.map(({ last }) => last));
  const ranges = divide(sources, start, end);
  return ranges.at(-1)?.last === end && areSkipped(request, gapsIn(ranges, start));
}

/**
 * The lowest slots, above the first of any archive and below the live nodes, that no backend has; `undefined`: none, or
 * not enough is known. Archives of whole epochs end days before the newest slot, and each of several may hold a part.
 * An end of an archive that is not known counts as beyond the gap. The chain may have skipped some of the slots.
 */
export function historyGap(backends: readonly Backend[]): Gap | undefined {
  const sources = backends.filter(({ config }) => config.lanes.includes('archive')).map(sourceOf);
  const lives = sources.filter(({ isLive }) => isLive).filter(isKnown);
  const archives = sources
    .filter(({ isLive }) => !isLive)
    .map((source) => ({ ...source, first: source.first ?? 0, last: source.last ?? Infinity }));
  const start = Math.min(...firstsOf(archives));
  const end = Math.max(...firstsOf(lives));
  // Without an archive or a known live node these are infinite.
  if (start >= end) return undefined;
  const [gap] = gapsIn(divide([...archives, ...lives], start, end), start);
  return gap === undefined ? undefined : { from: gap.from, to: gap.above.first - 1 };
}
