import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';

const [HOUR_MS, DAY_MS] = [3_600_000, 86_400_000];
/** Between two batches others may write. */
const PAUSE_MS = 50;

type Deps = Readonly<{ prune(nowMs: number): boolean; clock: Clock; log: Log }>;

/** Forgets what is old at the start and once a day, in batches, until `signal` aborts; after a failure, an hour later. */
export async function tendOutbox({ prune, clock, log }: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let waitMs = DAY_MS;
    try {
      while (prune(clock.now()) && !signal.aborted) await clock.sleep(PAUSE_MS, signal);
    } catch (error) {
      log.error({ err: error }, 'forgetting old deliveries broke');
      waitMs = HOUR_MS;
    }
    await clock.sleep(waitMs, signal);
  }
}
