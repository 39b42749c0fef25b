import type { Clock } from '../../shared/clock.ts';
import type { Backend } from '../backend/backend.ts';
import { COMMITMENTS } from '../backend/view.ts';
import { type Gap, historyGap } from './history-gap.ts';
import { inOrder } from './order.ts';
import { type Extent, extentOf, probe, type Reading } from './probe.ts';
import { referenceSlot } from './reference.ts';
import { createSeen } from './seen.ts';
import { isMoving, type Measure, standingAfter } from './standing.ts';
import type { Wish } from './wish.ts';

/** All backends together: which one a call should ask, and how they stand. */
export type Pool = Readonly<{
  /** The slot that the answer of this call must reach: what it asks for, or what its account has been shown; 0: any. */
  slotMin(wish: Wish, accountId: number): number;
  /** `able`, the best first. */
  inOrder(able: readonly Backend[], wish: Wish, accountId: number, slotMin: number): readonly Backend[];
  /** An answer told the slot it was read at. */
  learn(backend: Backend, wish: Wish, accountId: number, slot: number): void;
  /** Looks at every backend once. Never rejects. */
  probeAll(signal: AbortSignal): Promise<void>;
  /** The lowest block that any of them has, long-term storage included; `undefined` until all were asked. */
  floor(): number | undefined;
  /** Whether one that serves accounts is well. */
  isHealthy(): boolean;
}>;

export type PoolOptions = Readonly<{
  backends: readonly Backend[];
  clock: Clock;
  /** Slots behind the others at which a backend is left out. */
  lagSlotsMax: number;
  /** Told when a backend leaves or comes back. */
  onChange(backend: Backend): void;
  /** Told when slots are found that no backend has, or when there are none any more. */
  onGap(gap: Gap | undefined): void;
}>;

/** What changes slowly is asked in one of this many rounds. */
const ROUNDS_PER_EXTENT = 15;

export function createPool({ backends, clock, lagSlotsMax, onChange, onGap }: PoolOptions): Pool {
  const seen = createSeen(clock);
  const probed = backends.filter(({ config }) => config.lanes.some((lane) => lane !== 'assets'));
  const extents = new Map<Backend, Extent>();
  let round = 0;
  let hasGap = false;

  async function probeAll(signal: AbortSignal): Promise<void> {
    if (round++ % ROUNDS_PER_EXTENT === 0)
      await Promise.all(probed.map((backend) => extend(backend, signal)));
    const chain = chainOf(probed.map((backend) => extents.get(backend)?.genesis));
    const readings = await Promise.all(
      probed.map((backend) => {
        const genesis = extents.get(backend)?.genesis;
        return probe(backend, chain !== undefined && genesis !== undefined && genesis !== chain, signal);
      }),
    );
    if (signal.aborted) return;
    const measure = measureOf(readings);
    probed.forEach((backend, i) => {
      const reading = readings[i];
      if (reading !== undefined) take(backend, reading, measure);
    });
    const gap = historyGap(probed);
    if ((gap !== undefined) !== hasGap) onGap(gap);
    hasGap = gap !== undefined;
  }

  async function extend(backend: Backend, signal: AbortSignal): Promise<void> {
    const extent = await extentOf(backend, signal);
    // A round without an answer keeps what was known.
    if (signal.aborted || (extent.floor === undefined && extents.has(backend))) return;
    extents.set(backend, extent);
    backend.view.floor = extent.floor;
  }

  function measureOf(readings: readonly Reading[]): Measure {
    const nowMs = clock.monotonic();
    const live = probed.flatMap((backend, i) => {
      const reading = readings[i];
      const { standing } = backend;
      if (reading?.kind !== 'reading' || reading.isOtherChain || !isLive(backend)) return [];
      const moves = reading.tip > standing.tip || isMoving(standing, nowMs);
      return [
        { tip: reading.tip, moves, movedAtMs: reading.tip > standing.tip ? nowMs : standing.movedAtMs },
      ];
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
    const before = backend.standing;
    // An archive is behind by its nature; only whether it answers counts.
    const by = isLive(backend) ? measure : { ...measure, slot: 0, movedAtMs: -Infinity };
    backend.standing = standingAfter(before, reading, by);
    if (reading.kind === 'reading') {
      for (const commitment of COMMITMENTS) {
        // As read, and not the highest: a node that was set back to an older snapshot has not what it had.
        backend.view.tip[commitment] = reading.slots[commitment] ?? backend.view.tip[commitment];
      }
    }
    if (before.out !== backend.standing.out) onChange(backend);
  }

  function floor(): number | undefined {
    const holders = probed.filter(({ config }) => config.lanes.includes('archive'));
    if (!holders.every((backend) => extents.has(backend))) return undefined;
    const floors = holders.flatMap((backend) => extents.get(backend)?.reach ?? []);
    return floors.length === 0 ? undefined : Math.min(...floors);
  }

  return {
    slotMin({ commitment, slotMin }, accountId) {
      if (backends.length < 2) return 0;
      return commitment === undefined ? slotMin : Math.max(slotMin, seen.highest(accountId, commitment));
    },
    inOrder: (able, wish, accountId, slotMin) => inOrder(able, accountId, wish, slotMin, clock),
    learn({ view }, { commitment }, accountId, slot) {
      if (commitment === undefined || slot === 0 || backends.length < 2) return;
      view.tip[commitment] = Math.max(view.tip[commitment], slot);
      seen.note(accountId, commitment, slot);
    },
    probeAll,
    floor,
    isHealthy: () =>
      backends.some(({ config, standing }) => config.lanes.includes('state') && standing.out === undefined),
  };
}

/** Whether it follows the tip of the chain; what serves nothing but history does not. */
function isLive({ config }: Backend): boolean {
  return config.lanes.some((lane) => lane === 'state' || lane === 'scan' || lane === 'send');
}

/** The chain of most backends, of the first among equals; `undefined` when none tells. */
function chainOf(hashes: readonly (string | undefined)[]): string | undefined {
  const told = hashes.filter((hash) => hash !== undefined);
  const votes = (hash: string) => told.filter((other) => other === hash).length;
  return told.toSorted((a, b) => votes(b) - votes(a))[0];
}
