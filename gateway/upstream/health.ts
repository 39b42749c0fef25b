import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import { textIn } from '../json/scan.ts';
import { memberOf, membersOf, numberIn } from '../json/slices.ts';
import { readAll, watched } from '../http/stream-body.ts';
import {
  type Backend,
  type Commitment,
  COMMITMENTS,
  type ExclusionReason,
  followsTip,
  type HealthState,
  isLiveNode,
} from './backend.ts';
import { failureOf, NODE_UNHEALTHY } from './failure.ts';
import { isForeign } from './followed-answer.ts';
import { type HttpReply, NO_DESCRIPTORS, type Surrender } from './http-connection.ts';
import { discarded } from './response-reader.ts';

/** The result of one probe of a backend. */
export type Reading = Readonly<{
  /** Its newest slots; unknown ones are absent. */
  slots: Readonly<Partial<Record<Commitment, number | undefined>>>;
  /** It answers no question, or says itself that it is not well. */
  trouble: Extract<ExclusionReason, 'unreachable' | 'unhealthy'> | undefined;
  /** The act of an unreachable one in place of an answer; empty otherwise. */
  reason: string;
}>;

/** The slot that a backend is compared by; 0: not known. */
function tipIn({ slots }: Reading): number {
  return slots.confirmed ?? slots.finalized ?? slots.processed ?? 0;
}

type ProbeAnswer = Uint8Array | string;

/** A probe must not wait longer than the callers it is for, neither for a head nor for the rest. */
const PROBE_MS = 2_000;
const ANSWER_BYTES_MAX = 4_096;

/** Asks a backend for its health and slots; any answer shows that it is there. Never rejects. */
async function probe(backend: Backend, signal: AbortSignal): Promise<Reading> {
  const { followsTip, processed } = PROFILES[backend.config.profile];
  const known = followsTip && processed ? COMMITMENTS : COMMITMENTS.slice(1);
  const [health, ...tips] = await Promise.all([
    ask(backend, 'getHealth', '[]', signal),
    ...known.map((commitment) => ask(backend, 'getSlot', `[{"commitment":"${commitment}"}]`, signal)),
  ]);
  if (typeof health === 'string' && tips.every((answer) => typeof answer === 'string'))
    return { slots: {}, trouble: 'unreachable', reason: health };
  const slots = Object.fromEntries(known.map((name, i) => [name, numberIn(resultOf(tips[i] ?? ''))]));
  // Whatever the error's text; a node without the method says nothing about its health.
  const isUnhealthy = typeof health !== 'string' && failureOf(health)?.code === NODE_UNHEALTHY;
  return { slots, trouble: isUnhealthy ? 'unhealthy' : undefined, reason: '' };
}

/** Asks for what changes slowly: its first block, with and without its long-term storage, and its chain. Never rejects. */
async function learnExtent(backend: Backend, signal: AbortSignal): Promise<void> {
  const { config, slots } = backend;
  const [local, all, hash] = await Promise.all([
    PROFILES[config.profile].bigtable ? ask(backend, 'getFirstAvailableBlock', '[]', signal, true) : '',
    ask(backend, 'getFirstAvailableBlock', '[]', signal),
    ask(backend, 'getGenesisHash', '[]', signal),
  ]);
  const genesis = resultOf(hash);
  if (genesis !== undefined) backend.genesis = textIn(genesis) ?? backend.genesis;
  if (backend.health.excludedBecause === OTHER_CHAIN) return;
  const firstBlock = numberIn(resultOf(all));
  slots.firstLocalBlock = numberIn(resultOf(local)) ?? firstBlock ?? slots.firstLocalBlock;
  slots.firstBlock = firstBlock ?? slots.firstBlock;
}

/** The id of the gateway's own questions, by which an operator finds them in a node's log. */
export const PROBE_ID = 'sluice-probe';
const OWN_ID = Buffer.from(`"${PROBE_ID}"`);

async function ask(
  { client }: Backend,
  method: string,
  params: string,
  signal: AbortSignal,
  localOnly = false,
): Promise<ProbeAnswer> {
  const body = Buffer.from(`{"jsonrpc":"2.0","id":"${PROBE_ID}","method":"${method}","params":${params}}`);
  const request = { body, dueMs: PROBE_MS, kind: 'meta', localOnly } as const;
  const reply = await client.send(request, signal);
  return reply.kind === 'reply' ? readAnswer(reply, signal) : reply.reason;
}

async function readAnswer({ head, body }: HttpReply, signal: AbortSignal): Promise<ProbeAnswer> {
  const { status } = head;
  if (status !== 200) {
    discarded(body, { kind: 'status', status }, OWN_ID);
    return `HTTP ${status}`;
  }
  const answer = await readAll(watched(body, signal), ANSWER_BYTES_MAX);
  if (typeof answer === 'string') return answer;
  const isAnswer = membersOf(answer) !== undefined && !isForeign(answer, OWN_ID);
  // What comes next over its connection may be late answers to calls.
  if (!isAnswer) body.distrust?.();
  return isAnswer ? answer : 'no JSON-RPC answer';
}

function resultOf(answer: ProbeAnswer): Buffer | undefined {
  return typeof answer === 'string' ? undefined : memberOf(answer, 'result');
}

/** A leader this far ahead of the only other node is doubted: 7 minutes of slots, and no node falls that far behind unnoticed. */
const FAR_SLOTS = 1_024;

/** The slot to measure backends by: the highest, or the second where that stands alone: it may lie. 0 without tips. */
export function referenceSlot(tips: readonly number[], lagSlotsMax: number): number {
  const [first = 0, second, third] = tips.filter((tip) => tip > 0).toSorted((a, b) => b - a);
  if (second === undefined) return first;
  // Of two, either may be right: take the higher one, while it is believable.
  const believable = third === undefined ? FAR_SLOTS : lagSlotsMax;
  return first - second > believable ? second : first;
}

export const OTHER_CHAIN = 'of another chain';

/** Bad probes in a row until it is left out, and good ones until it is back beside others: a single slip changes nothing. */
const BAD_PROBES = 2;
const GOOD_PROBES = 3;

/** A live node's slot grows every 0.4 s; one that stands still this long while the pool goes on has stopped. */
const STALLED_MS = 15_000;

/** The measure of the probes of a round. */
type RoundMeasure = Readonly<{
  /** The slot of `referenceSlot`; 0: not known. */
  slot: number;
  /** When the newest slot of any backend last grew, on the monotonic clock. */
  movedAtMs: number;
  lagSlotsMax: number;
  nowMs: number;
}>;

/** The measure of a probe: its genesis may not be that of the others; no other that does its work may take part. */
export type Measure = RoundMeasure & Readonly<Record<'isOtherChain' | 'isNoneIn', boolean>>;

/** The health after one more probe: out above `lagSlotsMax`, good again at half of it, so that nothing flaps. */
export function healthAfter(before: HealthState, reading: Reading, measure: Measure): HealthState {
  const { slot, lagSlotsMax, nowMs, isOtherChain, isNoneIn } = measure;
  const isOut = before.excludedBecause !== undefined;
  const tip = tipIn(reading);
  const lagSlots = tip === 0 ? 0 : Math.max(0, slot - tip);
  const movedAtMs = tip > before.tip || before.movedAtMs === -Infinity ? nowMs : before.movedAtMs;
  const poolMoves = measure.movedAtMs > nowMs - STALLED_MS / 2;
  const isStalled = tip > 0 && poolMoves && nowMs - movedAtMs >= STALLED_MS;
  const isLagging = lagSlots > (isOut ? lagSlotsMax / 2 : lagSlotsMax);
  const why = isOtherChain ? OTHER_CHAIN : isStalled ? 'stalled' : isLagging ? 'lagging' : reading.trouble;
  const against = (why === undefined) === isOut ? before.against + 1 : 0;
  // Another chain is no slip.
  const leaves = !isOut && (against >= BAD_PROBES || why === OTHER_CHAIN);
  const returns = isOut && against >= (isNoneIn ? 1 : GOOD_PROBES);
  return {
    excludedBecause: leaves || (isOut && !returns) ? (why ?? before.excludedBecause) : undefined,
    reason: reading.reason,
    lagSlots,
    against: leaves || returns ? 0 : against,
    backAtMs: returns ? nowMs : before.backAtMs,
    tip: tip === 0 ? before.tip : tip,
    movedAtMs,
  };
}

export type WatchOptions = Readonly<{
  backends: readonly Backend[];
  clock: Clock;
  lagSlotsMax: number;
  /** Called when a backend is excluded or comes back. */
  onChange(backend: Backend): void;
  /** Called for each probe that a backend did not answer. */
  onUnreachable(backend: Backend): void;
}>;

/** A backend that takes longer has not answered this round; the others must not wait for it. */
const ROUND_MS = 1_000;

/** A backend that has calls and has answered none for so long is probed before its time. */
const QUIET_MS = 500;

/** Rounds from one probe to the next of what changes slowly, once it is known. */
const ROUNDS_PER_EXTENT = 15;

const LATE: Reading = { slots: {}, trouble: 'unreachable', reason: `no answer within ${ROUND_MS} ms` };

/** A backend between rounds, before its first. */
const UNWATCHED = {
  /** Rounds in a row in which it answered neither probes nor calls, and the calls that it had answered before. */
  silentRounds: 0,
  answeredBefore: 0,
  /** There was such a round since it last answered a probe. */
  hasHung: false,
  /** The calls that it has answered, since when it answers no more although it has some, and whether it was probed for that. */
  answered: 0,
  quietSinceMs: Infinity,
  isProbed: false,
};

/**
 * Probes every backend and keeps what is found: a round judges what came in time, and never rejects. `isUrgent`, called a
 * few times a second, says whether the next one is due a second after the last.
 */
export function createProbeAll({ backends, clock, lagSlotsMax, onChange, onUnreachable }: WatchOptions) {
  let rounds = 0;
  let roundMs = clock.monotonic();
  const watched = backends.map((backend) => ({ ...UNWATCHED, backend }));

  /** Whether a backend that takes part has missed a probe, or has fallen quiet. */
  function isUrgent(): boolean {
    const nowMs = clock.monotonic();
    let isAny = false;
    for (const each of watched) {
      const { answered, inFlight, health } = each.backend;
      if (inFlight === 0 || answered !== each.answered)
        Object.assign(each, { answered, quietSinceMs: nowMs, isProbed: false });
      const isQuiet = !each.isProbed && nowMs - each.quietSinceMs >= QUIET_MS;
      isAny ||= health.excludedBecause === undefined && (each.silentRounds > 0 || isQuiet);
    }
    return isAny && nowMs - roundMs >= ROUND_MS;
  }

  return { probeAll, isUrgent };

  async function probeAll(signal: AbortSignal): Promise<void> {
    const isDue = rounds++ % ROUNDS_PER_EXTENT === 0;
    const beganMs = (roundMs = clock.monotonic());
    const over = new AbortController();
    const limit = AbortSignal.any([signal, over.signal]);
    // A question without an answer by then holds no connection, and not the end of the process.
    void clock.sleep(PROBE_MS, limit).then(() => over.abort());
    const found = backends.map(() => LATE);
    const probing = watched.map(async (each, i) => {
      const { backend } = each;
      each.isProbed ||= beganMs - each.quietSinceMs >= QUIET_MS;
      if (each.silentRounds === 0) each.answeredBefore = backend.answered;
      const extended = isDue || isUntold(backend) ? learnExtent(backend, limit) : undefined;
      const sentMs = clock.monotonic();
      const reading = (found[i] = await probe(backend, limit));
      if (reading.trouble !== 'unreachable') backend.probeTookMs = clock.monotonic() - sentMs;
      await extended;
    });
    await Promise.race([Promise.all(probing).then(() => over.abort()), clock.sleep(ROUND_MS, limit)]);
    if (!signal.aborted) judge(found, beganMs);
  }

  /** Takes what a round has found, and has backends that hang or are left out give up calls that others may answer. */
  function judge(found: readonly Reading[], beganMs: number): void {
    const chain = chainOf(backends);
    const inBefore = backends.filter(({ health }) => health.excludedBecause === undefined);
    const looks = watched.flatMap((each, i) => {
      const { backend } = each;
      const reading = found[i] ?? LATE;
      // It was not probed, so nothing is known of it.
      if (reading.reason === NO_DESCRIPTORS) return [];
      const isOtherChain = (backend.genesis ?? chain) !== chain;
      const isNoneIn = !inBefore.some(({ config }) => isLiveNode(config) === isLiveNode(backend.config));
      return [{ each, backend, reading, isOtherChain, isNoneIn }];
    });
    const measure = measureOf(looks, lagSlotsMax, clock.monotonic());
    for (const { backend, reading, isOtherChain, isNoneIn } of looks)
      take(backend, reading, { ...measure, isOtherChain, isNoneIn });
    const isAnyIn = backends.some(({ health }) => health.excludedBecause === undefined);
    // When no backend answers, this process may be late.
    const isLate = found.every(({ trouble }) => trouble === 'unreachable');
    const judged = looks.map(({ each, backend, reading }) => {
      const wasIn = inBefore.includes(backend);
      // What still answers calls is slow, and does not hang.
      const isThere = reading.trouble !== 'unreachable';
      const isSilent = !isThere && backend.answered === each.answeredBefore;
      const hadHung = each.hasHung;
      each.silentRounds = isSilent ? each.silentRounds + 1 : 0;
      each.hasHung = isSilent || (hadHung && !isThere);
      const why = backend.health.excludedBecause;
      const isStillOut = !wasIn && why === 'unreachable';
      backend.isSilent = each.silentRounds >= (isStillOut ? 1 : BAD_PROBES);
      const hasLeft = wasIn && why !== undefined && why !== 'unreachable';
      const alone = isSilent && !isLate ? 'reads' : undefined;
      const left = backend.isSilent ? 'hung' : hasLeft && isAnyIn ? 'scans' : alone;
      const what: Surrender | undefined = why === OTHER_CHAIN ? 'all' : left;
      return { backend, what, isLost: hadHung && isThere };
    });
    // Last, because by then it is known which others may answer.
    for (const { backend, what, isLost } of judged) {
      if (what !== undefined) backend.client.abandon(what);
      // What it had when it hung may be lost; what was sent since then is not.
      if (isLost) backend.client.abandon('lost', beganMs);
    }
  }

  function take(backend: Backend, reading: Reading, measure: Measure): void {
    const { health: before, slots } = backend;
    const { slots: read, trouble } = reading;
    const { isOtherChain } = measure;
    // An archive is behind by its nature; only whether it answers counts.
    const own = followsTip(backend.config) ? {} : { slot: 0, movedAtMs: -Infinity };
    backend.health = healthAfter(before, reading, { ...measure, ...own });
    if (trouble === 'unreachable') onUnreachable(backend);
    if (isOtherChain) slots.firstLocalBlock = slots.firstBlock = undefined;
    const newest = Math.max(...COMMITMENTS.map((commitment) => read[commitment] ?? 0));
    // What it says is not believed beside others that are far behind it: then its slots are not known.
    const isDoubted = measure.slot > 0 && newest > measure.slot + FAR_SLOTS;
    const isUnknown = isOtherChain || isDoubted;
    // As read, and not the highest: a node that was set back to an older snapshot has not what it had.
    for (const commitment of COMMITMENTS)
      slots.tip[commitment] = isUnknown ? 0 : (read[commitment] ?? slots.tip[commitment]);
    const finalized = read.finalized ?? backend.finalized;
    backend.finalized = isOtherChain ? 0 : isDoubted ? Math.min(finalized, measure.slot) : finalized;
    const slot = isUnknown || newest === 0 ? measure.slot : newest;
    if (slot > 0) backend.probed = { slot, atMs: measure.nowMs };
    if (before.excludedBecause !== backend.health.excludedBecause) onChange(backend);
  }
}

/** Whether what it has must be known soon: it comes back, or its first block is not known. */
function isUntold({ config, slots, health }: Backend): boolean {
  const needsFloor = config.lanes.includes('archive') && slots.firstLocalBlock === undefined;
  return health.excludedBecause !== OTHER_CHAIN && (needsFloor || health.excludedBecause === 'unreachable');
}

/** Takes the measure of a round from its own probes. */
function measureOf(
  looks: readonly Readonly<{ backend: Backend; reading: Reading; isOtherChain: boolean }>[],
  lagSlotsMax: number,
  nowMs: number,
): RoundMeasure {
  const live = looks.flatMap(({ backend: { config, health }, reading, isOtherChain }) => {
    if (reading.trouble === 'unreachable' || isOtherChain || !followsTip(config)) return [];
    const tip = tipIn(reading);
    return [{ tip, movedAtMs: tip > health.tip ? nowMs : health.movedAtMs }];
  });
  // One whose slot has not grown lately is not measured by, while another's has.
  const moving = live.filter(({ movedAtMs }) => nowMs - movedAtMs < STALLED_MS);
  const tips = (moving.length > 0 ? moving : live).map(({ tip }) => tip);
  const movedAtMs = Math.max(-Infinity, ...live.map((each) => each.movedAtMs));
  return { slot: referenceSlot(tips, lagSlotsMax), movedAtMs, lagSlotsMax, nowMs };
}

/** The chain of most backends, of the first among equals; `undefined`: not known. */
function chainOf(backends: readonly Backend[]): string | undefined {
  const known = backends.flatMap(({ genesis }) => genesis ?? []);
  const votes = (hash: string) => known.filter((other) => other === hash).length;
  return known.toSorted((a, b) => votes(b) - votes(a))[0];
}
