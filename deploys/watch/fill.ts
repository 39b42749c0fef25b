import type { Slot } from '@solana/kit';
import type { Clock } from '../../shared/clock.ts';
import type { BlockTimes } from './block-time.ts';
import { deploySlotOf, type Reading } from './program-state.ts';

type Deps = Readonly<{
  blockTimes: BlockTimes;
  /** The slots whose block times events wait for, and since when (Unix milliseconds). */
  awaited(): readonly Readonly<{ slot: Slot; sinceMs: number }>[];
  clock: Clock;
}>;

/** First and longest wait before what an event waits for is asked for again; anything else is not asked for sooner. */
const [RETRY_MS_MIN, RETRY_MS_MAX] = [1_000, 15_000];
/** A block time that did not come for so long is asked for as rarely as any other. */
const URGENT_MS = 600_000;

/**
 * Looks up the block times of a reading and of events that wait for theirs, until none of those is missing or the signal
 * aborts. An event may need the time of a deploy that no reading shows any more.
 */
export function createFill({ blockTimes, awaited, clock }: Deps) {
  return async function fill(reading: Reading, signal: AbortSignal): Promise<void> {
    const shown = [...reading.programs.values()].flatMap((state) => deploySlotOf(state) ?? []);
    for (let retryMs = RETRY_MS_MIN; !signal.aborted; retryMs = Math.min(2 * retryMs, RETRY_MS_MAX)) {
      const waiting = awaited();
      const fresh = waiting.filter(({ sinceMs }) => clock.now() - sinceMs < URGENT_MS);
      const urgent = new Set(fresh.map(({ slot }) => slot));
      const slots = [...shown, ...waiting.map(({ slot }) => slot)];
      await blockTimes.fill(slots, signal, urgent);
      const missing = slots.filter((slot) => blockTimes.timeOf(slot) === undefined);
      if (missing.length === 0) return;
      const dueInMs = missing.map((slot) => (urgent.has(slot) ? 0 : blockTimes.dueInMs(slot)));
      await clock.sleep(Math.max(retryMs, Math.min(...dueInMs)), signal);
    }
  };
}
