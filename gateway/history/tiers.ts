import type { Clock } from '../../shared/clock.ts';
import { type ProfileName, PROFILES } from '../../shared/config/profiles.ts';
import { METHODS } from '../../shared/config/methods.ts';
import { type Call, methodMember, rpcError, rpcResult } from '../request/envelope.ts';
import { type Backend, isLiveNode } from '../upstream/backend.ts';
import type { CallReply } from '../upstream/failover.ts';
import {
  type CallContext,
  type Forward,
  type HistoryPart,
  readReply,
  type TimedContext,
} from '../upstream/forward.ts';
import { SMALL_BODY_BYTES_MAX } from '../upstream/response-reader.ts';
import type { ForwardRoute, Gap } from '../upstream/selection.ts';
import { elementsOf, joined, memberOf, numberIn } from '../json/slices.ts';
import { isNull } from '../json/scan.ts';

/** The backends of a history method: live nodes, which hold some days, and archives, which hold the rest. */
export type Tiers = Readonly<{ live: readonly Backend[]; archive: readonly Backend[] }>;

/** Changes to the caller's call in a request to backends; `localOnly` excludes the long-term storage behind a node. */
export type Changes = Readonly<{ method?: string; params?: Uint8Array | undefined }> &
  Partial<HistoryPart & Pick<CallContext, 'signal'>>;

/**
 * The advice of a tier's reply about the other tier: `refused`, an error that the other tier would repeat, or the caller has
 * left; `null`, "not here", which may be "not at all"; `unreachable`, no backend of the tier could answer; `lacking`, an
 * error that the other tier may not have.
 */
export type ReplyClass =
  | { readonly kind: 'found' | 'refused' | 'null' | 'unreachable' }
  | { readonly kind: 'lacking'; readonly code: number };

/** By Agave's `custom_error.rs`; -32000 is Superbank's time-out. */
const LACKING = new Set([
  -32000, -32001, -32004, -32005, -32007, -32009, -32011, -32014, -32019, -32020, -32021, -32601, -32603,
]);

/** Classifies a tier's reply. A stream is never a null, because nulls are short. */
export function classify(reply: CallReply): ReplyClass {
  if (reply.kind === 'stream') return { kind: 'found' };
  if (reply.kind === 'caller-left') return { kind: 'refused' };
  if (reply.kind !== 'whole') return { kind: 'unreachable' };
  const { bytes, code, message = '' } = reply;
  if (bytes.length > SMALL_BODY_BYTES_MAX) return { kind: 'found' };
  if (code === undefined) return { kind: isNull(memberOf(bytes, 'result')) ? 'null' : 'found' };
  const isLacking = LACKING.has(code) || message.startsWith('BigTable query failed');
  return isLacking ? { kind: 'lacking', code } : { kind: 'refused' };
}

/** Whether the reply is the answer, whatever the other tier has. */
export function isFinal(reply: CallReply): boolean {
  const { kind } = classify(reply);
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
function tiersOf(backends: readonly Backend[]): Tiers {
  return {
    live: backends.filter(({ config }) => isLiveNode(config)),
    archive: backends.filter(({ config }) => !isLiveNode(config)),
  };
}

/** Reads from the probes what a backend has of history. */
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
export function fromGenesis<First extends number | undefined>(firstBlock: First): First | 0 {
  return firstBlock === 1 ? 0 : firstBlock;
}

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

export function firstsOf(sources: readonly Source[]): readonly number[] {
  return sources.flatMap(({ first }) => first ?? []);
}

/** From there on every live node has every block; `Infinity`: there is no live node. */
function highestLiveFirst(ranges: readonly BlockRange[]): number {
  const firsts = firstsOf(ranges.filter(({ isLive }) => isLive));
  return firsts.length === 0 ? Infinity : Math.max(...firsts);
}

/** Slots that no backend is known to have, from `from` up to where the next range begins. */
type SlotGap = Readonly<{ from: number; above: Above }>;

/** Backends that have every block from slot `first` on. */
export type Above = Pick<BlockRange, 'backends' | 'isLive' | 'first'>;

/** Nodes clean up in steps: so many slots above its first one, a live node is not called for blocks of an archive. */
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
    const from = (ranges[i - 1]?.last ?? start - 1) + 1;
    return from < above.first ? [{ from, above }] : [];
  });
}

const HEAD_ONLY = '{"transactionDetails":"none","rewards":false,"maxSupportedTransactionVersion":0}';

/** No page of 1,000 signatures and no list of 500,000 slots is longer. */
const READ_BYTES_MAX = 8_388_608;

/** One call of a history method, which may need several backends. */
export class HistoryRequest {
  readonly call: Call;
  /** The method's name to backends. */
  readonly method: string;
  readonly signal: AbortSignal;
  tiers: Tiers;
  readonly #forward: Forward;
  readonly #clock: Clock;
  readonly #route: ForwardRoute;
  readonly #context: TimedContext;
  #open = 1;
  #sent = 0;

  constructor(forward: Forward, clock: Clock, call: Call, route: ForwardRoute, context: TimedContext) {
    this.call = call;
    this.method = route.name;
    this.signal = context.signal;
    this.tiers = tiersOf(route.backends);
    this.#forward = forward;
    this.#clock = clock;
    this.#route = route;
    this.#context = context;
  }

  /** Gives the answer of a rule; `onSettled` is called once, when it is there and no backend works on the call any more. */
  async settle(answer: Promise<CallReply>): Promise<CallReply> {
    try {
      const reply = await answer;
      // A stream ends by itself when its caller leaves.
      const hasLeft = reply.kind === 'caller-left' || (this.signal.aborted && reply.kind !== 'stream');
      if (!hasLeft) return reply;
      return this.#sent > 0 ? { kind: 'caller-left' } : { kind: 'caller-left', unsent: true };
    } finally {
      this.#close();
    }
  }

  #close(): void {
    if (--this.#open === 0) this.#context.onSettled?.();
  }

  /** Sends the call to the best of some backends. Never rejects. */
  async send(backends: readonly Backend[], changes: Changes = {}): Promise<CallReply> {
    const { method = this.method, params = this.call.params, signal = this.signal } = changes;
    const { localOnly = false, hasNext = false } = changes;
    this.#open++;
    this.#sent++;
    const route = {
      ...this.#route,
      name: method,
      member: methodMember(method),
      method: METHODS.get(method) ?? this.#route.method,
      backends,
    };
    const part = { localOnly, hasNext };
    const own = { ...this.#context, signal, part, onSettled: () => this.#close() };
    const reply = await this.#forward({ ...this.call, params, method }, route, own);
    if (reply.kind === 'caller-left' && reply.unsent === true) this.#sent--;
    return reply;
  }

  /** Sends parameters that are not understood to live nodes, whose errors are Agave's; archives accept some of them. */
  sendUnparsed(): Promise<CallReply> {
    const { live, archive } = this.tiers;
    return this.send(live.length > 0 ? live : archive);
  }

  /** Sends the call, and reads the answer to its end, uncompressed and in time. One that is cut or above 8 MiB is `no-backend`. */
  async read(
    backends: readonly Backend[],
    changes: Changes,
  ): Promise<Exclude<CallReply, { kind: 'stream' }>> {
    return readReply(await this.send(backends, changes), READ_BYTES_MAX, this.#clock);
  }

  async readResult(backends: readonly Backend[], changes: Changes): Promise<Uint8Array | undefined> {
    const reply = await this.read(backends, changes);
    return reply.kind === 'whole' ? memberOf(reply.bytes, 'result') : undefined;
  }

  reply(result: Uint8Array): CallReply {
    return rpcResult(result, this.call.id);
  }

  /** The answer when a part of history is missing; Agave's code and text (`custom_error.rs`). */
  unavailable(): CallReply {
    return rpcError(-32019, 'Failed to query long-term storage; please try again', this.call.id);
  }

  /** The first block of backends at or after a slot; `undefined`: none, or they do not say. */
  async firstBlockFrom({ backends, isLive }: Pick<Source, 'backends' | 'isLive'>, slot: number) {
    const params = joined([`[${slot},1]`]);
    const changes = { method: 'getBlocksWithLimit', params, localOnly: isLive };
    const list = await this.readResult(backends, changes);
    const [block, ...more] = elementsOf(list) ?? [];
    return more.length > 0 ? undefined : numberIn(block);
  }

  /** The first slot of a source: found by a list of blocks where the probes did not find it. `undefined`: not known. */
  async firstSlot(source: Source): Promise<number | undefined> {
    return source.first ?? fromGenesis(await this.firstBlockFrom(source, 0));
  }

  /** Whether the chain skipped the slots of all gaps: the first block above a gap names its parent. */
  async areSkipped(gaps: readonly SlotGap[]): Promise<boolean> {
    const parents = gaps.map(async ({ above: { backends, isLive, first } }) => {
      const block = await this.firstBlockFrom({ backends, isLive }, first);
      if (block === undefined) return undefined;
      const changes = { method: 'getBlock', params: joined([`[${block},${HEAD_ONLY}]`]), localOnly: isLive };
      return numberIn(memberOf(await this.readResult(backends, changes), 'parentSlot'));
    });
    return (await Promise.all(parents)).every((parent, i) => (parent ?? Infinity) < (gaps[i]?.from ?? 0));
  }

  /** Slots from `start` to `end` by the backends that are known to have them (`divide`). */
  async rangesBetween(start: number, end: number): Promise<readonly BlockRange[]> {
    const sources = [...this.tiers.live, ...this.tiers.archive].map(sourceOf);
    const ranges = divide(sources.filter(isKnown), start, end);
    const isWhole = ranges.at(-1)?.last === end && gapsIn(ranges, start).length === 0;
    return isWhole || sources.every(isKnown) ? ranges : divide(await this.#knownSources(end), start, end);
  }

  /** Whether the backends have every slot from the lowest that any has: else a cursor may be where none looks. */
  async haveWholeChain(): Promise<boolean> {
    const { live, archive } = this.tiers;
    const sources = await this.#knownSources(Infinity);
    if (sources.length < live.length + archive.length) return false;
    const start = Math.min(...firstsOf(sources));
    const end = live.length > 0 ? highestLiveFirst(sources) : Math.max(...sources.map(({ last }) => last));
    const ranges = divide(sources, start, end);
    return ranges.at(-1)?.last === end && this.areSkipped(gapsIn(ranges, start));
  }

  /** The sources whose ends are known, or that give them when the probes did not find them. */
  async #knownSources(upTo: number): Promise<readonly BlockRange[]> {
    const { live, archive } = this.tiers;
    const lives = await this.#completed(live, upTo);
    const needed = Math.max(0, Math.min(upTo, highestLiveFirst(lives) - 1));
    return [...lives, ...(await this.#completed(archive, needed))];
  }

  async #completed(backends: readonly Backend[], upTo: number): Promise<readonly BlockRange[]> {
    const sources = backends.map(async (backend) => {
      const source = sourceOf(backend);
      const reaches = () => (upTo === Infinity ? undefined : this.firstBlockFrom(source, upTo));
      const [first, last] = await Promise.all([this.firstSlot(source), source.last ?? reaches()]);
      return { ...source, first, last };
    });
    return (await Promise.all(sources)).filter(isKnown);
  }
}

/**
 * The lowest slots, above the first of any archive and below the live nodes, that no backend has; `undefined`: none, or
 * not enough is known. An unknown end of an archive counts as beyond the gap. The chain may have skipped some of the slots.
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
