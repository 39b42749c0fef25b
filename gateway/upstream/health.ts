import type { Clock } from '../../shared/clock.ts';
import { type Backend, COMMITMENTS, followsTip, type HealthState, type ExclusionReason } from './backend.ts';
import { extentOf, probe, PROBE_MS, type Reading } from './probe.ts';

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

export const OTHER_CHAIN = 'of another chain';

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

/**
 * The health after one more probe. A node leaves above `lagSlotsMax` and counts as good again only at half of it, so
 * that one at the edge does not flap.
 */
export function healthAfter(before: HealthState, reading: Reading, measure: Measure): HealthState {
  const { slot, lagSlotsMax, nowMs } = measure;
  const isOut = before.excludedBecause !== undefined;
  const tip = reading.kind === 'unreachable' ? 0 : reading.tip;
  const lagSlots = tip === 0 ? 0 : Math.max(0, slot - tip);
  const movedAtMs = tip > before.tip || before.movedAtMs === -Infinity ? nowMs : before.movedAtMs;
  const why = reason();
  const against = (why === undefined) === isOut ? before.against + 1 : 0;
  // Another chain is no slip.
  const leaves = !isOut && (against >= BAD_PROBES || why === OTHER_CHAIN);
  const returns = isOut && against >= GOOD_PROBES;
  return {
    excludedBecause: leaves || (isOut && !returns) ? (why ?? before.excludedBecause) : undefined,
    reason: reading.kind === 'unreachable' ? reading.reason : '',
    lagSlots,
    against: leaves || returns ? 0 : against,
    backAtMs: returns ? nowMs : before.backAtMs,
    tip: tip === 0 ? before.tip : tip,
    movedAtMs,
  };

  function reason(): ExclusionReason | undefined {
    // What was of another chain still is when it does not answer.
    if (reading.kind === 'unreachable')
      return before.excludedBecause === OTHER_CHAIN ? OTHER_CHAIN : 'unreachable';
    if (reading.isOtherChain) return OTHER_CHAIN;
    const poolMoves = measure.movedAtMs > nowMs - STALLED_MS / 2;
    if (tip > 0 && nowMs - movedAtMs >= STALLED_MS && poolMoves) return 'stalled';
    if (lagSlots > (isOut ? lagSlotsMax / 2 : lagSlotsMax)) return 'lagging';
    return reading.healthy ? undefined : 'unhealthy';
  }
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

/** What changes slowly is probed again in one of this many rounds, once it is known. */
const ROUNDS_PER_EXTENT = 15;

const LATE: Reading = { kind: 'unreachable', reason: `no answer within ${ROUND_MS} ms` };

/**
 * Probes every backend, and keeps what is found in its health, its slots and its genesis; a round judges what came in
 * time. Never rejects.
 */
export function createProbeAll({ backends, clock, lagSlotsMax, onChange, onUnreachable }: WatchOptions) {
  let rounds = 0;

  return async function probeAll(signal: AbortSignal): Promise<void> {
    const isDue = rounds++ % ROUNDS_PER_EXTENT === 0;
    const over = new AbortController();
    const limit = AbortSignal.any([signal, over.signal]);
    // A question without an answer by then holds no connection, and not the end of the process.
    void clock.sleep(PROBE_MS, limit).then(() => over.abort());
    const found = backends.map(() => LATE);
    const asking = backends.map(async (backend, i) => {
      const extended = isDue || isUntold(backend) ? extend(backend, limit) : undefined;
      found[i] = await probe(backend, limit);
      await extended;
    });
    const all = Promise.all(asking).then(() => over.abort());
    await Promise.race([all, clock.sleep(ROUND_MS, limit)]);
    if (signal.aborted) return;
    const chain = chainOf(backends);
    const readings = backends.map((backend, i): [Backend, Reading] => {
      const reading = found[i] ?? LATE;
      const isOtherChain = chain !== undefined && (backend.genesis ?? chain) !== chain;
      return [backend, reading.kind === 'reading' ? { ...reading, isOtherChain } : reading];
    });
    const measure = measureOf(readings);
    for (const [backend, reading] of readings) take(backend, reading, measure);
  };

  /** Whether what it has must be known soon: it comes back, or its first block is not known. */
  function isUntold({ config, slots, health }: Backend): boolean {
    const needsFloor = config.lanes.includes('archive') && slots.firstLocalBlock === undefined;
    return health.excludedBecause !== OTHER_CHAIN && (needsFloor || health.excludedBecause === 'unreachable');
  }

  /** What is not answered stays as it was known. */
  async function extend(backend: Backend, limit: AbortSignal): Promise<void> {
    const { genesis, floor, reach } = await extentOf(backend, limit);
    backend.genesis = genesis ?? backend.genesis;
    if (backend.health.excludedBecause === OTHER_CHAIN) return;
    backend.slots.firstLocalBlock = floor ?? backend.slots.firstLocalBlock;
    backend.slots.firstBlock = reach ?? backend.slots.firstBlock;
  }

  function measureOf(readings: readonly (readonly [Backend, Reading])[]): Measure {
    const nowMs = clock.monotonic();
    const live = readings.flatMap(([{ config, health }, reading]) => {
      if (reading.kind !== 'reading' || reading.isOtherChain || !followsTip(config)) return [];
      const { tip } = reading;
      return [{ tip, movedAtMs: tip > health.tip ? nowMs : health.movedAtMs }];
    });
    // One whose slot has not grown lately is not measured by, while another's has.
    const moving = live.filter(({ movedAtMs }) => nowMs - movedAtMs < STALLED_MS);
    const tips = (moving.length > 0 ? moving : live).map(({ tip }) => tip);
    const movedAtMs = Math.max(-Infinity, ...live.map((each) => each.movedAtMs));
    return { slot: referenceSlot(tips, lagSlotsMax), movedAtMs, lagSlotsMax, nowMs };
  }

  function take(backend: Backend, reading: Reading, measure: Measure): void {
    const { health: before, slots } = backend;
    // An archive is behind by its nature; only whether it answers counts.
    const by = followsTip(backend.config) ? measure : { ...measure, slot: 0, movedAtMs: -Infinity };
    backend.health = healthAfter(before, reading, by);
    if (reading.kind === 'unreachable') onUnreachable(backend);
    else {
      const { isOtherChain } = reading;
      if (isOtherChain) slots.firstLocalBlock = slots.firstBlock = undefined;
      // As read, and not the highest: a node that was set back to an older snapshot has not what it had.
      for (const commitment of COMMITMENTS)
        slots.tip[commitment] = isOtherChain ? 0 : (reading.slots[commitment] ?? slots.tip[commitment]);
      backend.finalized = isOtherChain ? 0 : (reading.slots.finalized ?? backend.finalized);
    }
    if (before.excludedBecause !== backend.health.excludedBecause) onChange(backend);
  }
}

/** The chain of most backends, of the first among equals; `undefined` when none tells. */
function chainOf(backends: readonly Backend[]): string | undefined {
  const known = backends.flatMap(({ genesis }) => genesis ?? []);
  const votes = (hash: string) => known.filter((other) => other === hash).length;
  return known.toSorted((a, b) => votes(b) - votes(a))[0];
}
