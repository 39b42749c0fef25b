import type { Clock } from '../../shared/clock.ts';
import {
  type Backend,
  COMMITMENTS,
  followsTip,
  RAMP_MS,
  type HealthState,
  type ExclusionReason,
} from './backend.ts';
import { type Extent, extentOf, probe, PROBE_MS, type Reading } from './probe.ts';

/** A leader this far ahead of the only other node is doubted: 7 minutes of slots, and no node falls that far behind unnoticed. */
const FAR_SLOTS = 1_024;

/**
 * The slot that backends are measured by, from the newest slot of each: the highest, or the second highest when the
 * highest stands alone. One node that lies, or follows another chain, must not make all others look late. 0 without tips.
 */
export function referenceSlot(tips: readonly number[], lagSlotsMax: number): number {
  const [first = 0, second, third] = tips.filter((tip) => tip > 0).toSorted((a, b) => b - a);
  if (second === undefined) return first;
  // Of two, either may be right: take the higher one, while it is believable.
  const believable = third === undefined ? FAR_SLOTS : lagSlotsMax;
  return first - second > believable ? second : first;
}

const OTHER_CHAIN = 'of another chain';

/** Bad probes in a row until it is left out, and good ones until it is back: a single slip changes nothing. */
const BAD_PROBES = 2;
const GOOD_PROBES = 3;

/** A live node's slot grows every 0.4 s; one that stands still this long while the pool goes on has stopped. */
const STALLED_MS = 15_000;

/** What a probe is compared with. */
export type Measure = Readonly<{
  /** The slot of `referenceSlot`; 0: not known. */
  slot: number;
  /** When the newest slot of any backend last grew, on the monotonic clock. */
  movedAtMs: number;
  lagSlotsMax: number;
  nowMs: number;
}>;

/** Whether a backend's slot has grown lately, so that it may be measured by. */
function isMoving({ movedAtMs }: HealthState, nowMs: number): boolean {
  return nowMs - movedAtMs < STALLED_MS;
}

/**
 * The health after one more probe. A node leaves above `lagSlotsMax` and counts as good again only at half of it, so
 * that one at the edge does not flap.
 */
export function healthAfter(before: HealthState, reading: Reading, measure: Measure): HealthState {
  const { slot, lagSlotsMax, nowMs } = measure;
  const tip = reading.kind === 'unreachable' ? 0 : reading.tip;
  const moved = tip > before.tip;
  const next = {
    reason: reading.kind === 'unreachable' ? reading.reason : '',
    tip: tip === 0 ? before.tip : tip,
    movedAtMs: moved || before.movedAtMs === -Infinity ? nowMs : before.movedAtMs,
    lagSlots: tip === 0 ? 0 : Math.max(0, slot - tip),
  };
  const isStalled =
    tip > 0 && nowMs - next.movedAtMs >= STALLED_MS && measure.movedAtMs > nowMs - STALLED_MS / 2;
  const allowed = before.excludedBecause === undefined ? lagSlotsMax : lagSlotsMax / 2;
  const why = reason();
  const isOut = before.excludedBecause !== undefined;
  const against = (why === undefined) === isOut ? before.against + 1 : 0;
  // Another chain is no slip.
  const isBad = against >= BAD_PROBES || why === OTHER_CHAIN;
  if (!isOut && isBad) return { ...next, excludedBecause: why, against: 0, backAtMs: before.backAtMs };
  if (isOut && against >= GOOD_PROBES)
    return { ...next, excludedBecause: undefined, against: 0, backAtMs: nowMs };
  return {
    ...next,
    excludedBecause: isOut ? (why ?? before.excludedBecause) : undefined,
    against,
    backAtMs: before.backAtMs,
  };

  function reason(): ExclusionReason | undefined {
    // What was of another chain still is when it does not answer.
    if (reading.kind === 'unreachable')
      return before.excludedBecause === OTHER_CHAIN ? OTHER_CHAIN : 'unreachable';
    if (reading.isOtherChain) return OTHER_CHAIN;
    if (isStalled) return 'stalled';
    if (next.lagSlots > allowed) return 'lagging';
    return reading.healthy ? undefined : 'unhealthy';
  }
}

/** The share of its callers that a backend has back, 0 to 1. */
export function shareBack({ backAtMs }: HealthState, nowMs: number): number {
  return Math.min(1, (nowMs - backAtMs) / RAMP_MS);
}

/** Looks at every backend again and again, and keeps what it finds in their health and slots. */
type Watch = Readonly<{
  /** One round: asks all that do not still owe an answer, and judges what came in time. Never rejects. */
  probeAll(signal: AbortSignal): Promise<void>;
  /** What a backend last reported of its blocks; `undefined` until its first report. */
  extentOf(backend: Backend): Extent | undefined;
}>;

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

/** What changes slowly is probed again in one of this many rounds, once it is known. */
const ROUNDS_PER_EXTENT = 15;

const LATE: Reading = { kind: 'unreachable', reason: `no answer within ${ROUND_MS} ms` };

export function createWatch({ backends, clock, lagSlotsMax, onChange, onUnreachable }: WatchOptions): Watch {
  const extents = new Map<Backend, Extent>();
  /** Backends with a question that is not answered yet. */
  const asked = new Set<Backend>();
  const extended = new Set<Backend>();
  let rounds = 0;

  async function look(signal: AbortSignal): Promise<void> {
    const isDue = rounds++ % ROUNDS_PER_EXTENT === 0;
    const over = new AbortController();
    const inTime = clock.sleep(ROUND_MS, over.signal);
    const readings = new Map<Backend, Reading>();
    const looking = backends.map(async (backend) => {
      const extending = isDue || isUntold(backend) ? extend(backend, signal) : undefined;
      readings.set(backend, await readingOf(backend, signal));
      await extending;
    });
    await Promise.race([Promise.all(looking), inTime]);
    over.abort();
    if (signal.aborted) return;
    const chain = chainOf(backends.map((backend) => extents.get(backend)?.genesis));
    const judged = backends.map((backend) => ofChain(backend, readings.get(backend) ?? LATE, chain));
    const measure = measureOf(judged);
    backends.forEach((backend, i) => take(backend, judged[i] ?? LATE, measure));
  }

  /** Whether what it has must be known soon: it comes back, or its first block is not known. */
  function isUntold(backend: Backend): boolean {
    const needsFloor = backend.config.lanes.includes('archive') && extents.get(backend)?.floor === undefined;
    return needsFloor || backend.health.excludedBecause === 'unreachable';
  }

  async function extend(backend: Backend, signal: AbortSignal): Promise<void> {
    if (extended.has(backend)) return;
    extended.add(backend);
    const extent = await within(signal, (limit) => extentOf(backend, limit));
    extended.delete(backend);
    // A round without an answer keeps what was known.
    if (extent.floor === undefined && extent.genesis === undefined) return;
    const known = extents.get(backend);
    extents.set(backend, {
      floor: extent.floor ?? known?.floor,
      reach: extent.reach ?? known?.reach,
      genesis: extent.genesis ?? known?.genesis,
    });
  }

  async function readingOf(backend: Backend, signal: AbortSignal): Promise<Reading> {
    if (asked.has(backend)) return LATE;
    asked.add(backend);
    const reading = await within(signal, (limit) => probe(backend, limit));
    asked.delete(backend);
    return reading;
  }

  /** Lets go of questions that are not answered in time, so that none holds a connection, or the end of the process. */
  async function within<T>(signal: AbortSignal, ask: (limit: AbortSignal) => Promise<T>): Promise<T> {
    const limit = new AbortController();
    const abort = () => limit.abort();
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    void clock.sleep(PROBE_MS, limit.signal).then(abort);
    const answer = await ask(limit.signal);
    signal.removeEventListener('abort', abort);
    abort();
    return answer;
  }

  function ofChain(backend: Backend, reading: Reading, chain: string | undefined): Reading {
    const genesis = extents.get(backend)?.genesis;
    const isOther = chain !== undefined && genesis !== undefined && genesis !== chain;
    return reading.kind === 'reading' ? { ...reading, isOtherChain: isOther } : reading;
  }

  function measureOf(readings: readonly Reading[]): Measure {
    const nowMs = clock.monotonic();
    const live = backends.flatMap((backend, i) => {
      const reading = readings[i];
      const { health } = backend;
      if (reading?.kind !== 'reading' || reading.isOtherChain || !followsTip(backend.config)) return [];
      const { tip } = reading;
      const movedAtMs = tip > health.tip ? nowMs : health.movedAtMs;
      return [{ tip, moves: tip > health.tip || isMoving(health, nowMs), movedAtMs }];
    });
    const moving = live.filter(({ moves }) => moves);
    const tips = (moving.length > 0 ? moving : live).map(({ tip }) => tip);
    return {
      slot: referenceSlot(tips, lagSlotsMax),
      movedAtMs: Math.max(-Infinity, ...live.map(({ movedAtMs }) => movedAtMs)),
      lagSlotsMax,
      nowMs,
    };
  }

  function take(backend: Backend, reading: Reading, measure: Measure): void {
    const before = backend.health;
    // An archive is behind by its nature; only whether it answers counts.
    const by = followsTip(backend.config) ? measure : { ...measure, slot: 0, movedAtMs: -Infinity };
    backend.health = healthAfter(before, reading, by);
    if (reading.kind === 'unreachable') onUnreachable(backend);
    else see(backend, reading);
    if (before.excludedBecause !== backend.health.excludedBecause) onChange(backend);
  }

  function see(backend: Backend, { slots, isOtherChain }: Extract<Reading, { kind: 'reading' }>): void {
    const { slots: view } = backend;
    const extent = isOtherChain ? undefined : extents.get(backend);
    view.firstLocalBlock = extent?.floor;
    view.firstBlock = extent?.reach;
    for (const commitment of COMMITMENTS) {
      // As read, and not the highest: a node that was set back to an older snapshot has not what it had.
      view.tip[commitment] = isOtherChain ? 0 : (slots[commitment] ?? view.tip[commitment]);
    }
  }

  return {
    probeAll: look,
    extentOf: (backend) =>
      backend.health.excludedBecause === 'of another chain' ? undefined : extents.get(backend),
  };
}

/** The chain of most backends, of the first among equals; `undefined` when none tells. */
function chainOf(hashes: readonly (string | undefined)[]): string | undefined {
  const known = hashes.filter((hash) => hash !== undefined);
  const votes = (hash: string) => known.filter((other) => other === hash).length;
  return known.toSorted((a, b) => votes(b) - votes(a))[0];
}
