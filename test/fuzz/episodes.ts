import { systemClock } from '../../shared/clock.ts';
import { seeded } from '../fakes/seeded.ts';

/** Pseudo-random numbers that a seed repeats. */
export type Random = Readonly<{
  /** A whole number from 0 to below `n`. */
  below(n: number): number;
  one<T>(choices: readonly T[]): T;
}>;

export function randomOf(seed: number): Random {
  const next = seeded(Math.imul(seed, 0x9e3779b1));
  const below = (n: number) => Math.floor(next() * n);
  return {
    below,
    one(choices) {
      const choice = choices[below(choices.length)];
      if (choice === undefined) throw new Error('no choices');
      return choice;
    },
  };
}

/** Real time after which what should have ended is a finding. */
export const HANG_MS = 30_000;
const PROGRESS_MS = 1_000;

/** Says what is under way. */
export type Report = (line: string) => void;

/** Counts of what happened, by name. */
export type Count = (name: string) => void;

type Options = Readonly<{
  /** The first episode. */
  seed: number;
  seconds: number;
  /** So many run at once. */
  lanes: number;
  run(random: Random, count: Count): Promise<void>;
  /** Called after each episode that found nothing. */
  onEpisode?: ((seed: number) => void) | undefined;
  report?: Report | undefined;
  signal?: AbortSignal | undefined;
}>;

/** Runs episodes from a seed on for so many seconds, up to the first finding, or until `signal` aborts. */
async function runEpisodes(options: Options) {
  const { seed, seconds, lanes, run, onEpisode, report, signal } = options;
  const counts = new Map<string, number>();
  const count = (name: string) => void counts.set(name, (counts.get(name) ?? 0) + 1);
  const startedMs = systemClock.monotonic();
  let next = seed;
  let finding: string | undefined;
  let reportedMs = startedMs;
  const onRejection = (error: unknown) =>
    void (finding ??= `a rejection that nothing handles: ${String(error)}`);
  process.on('unhandledRejection', onRejection);
  const lane = async () => {
    const isOver = () => signal?.aborted === true || systemClock.monotonic() - startedMs >= seconds * 1_000;
    while (finding === undefined && !isOver()) {
      const episode = next++;
      try {
        await run(randomOf(episode), count);
        onEpisode?.(episode);
      } catch (error) {
        finding ??= `seed ${episode}: ${error instanceof Error ? error.message : String(error)}`;
      }
      if (systemClock.monotonic() - reportedMs < PROGRESS_MS) continue;
      reportedMs = systemClock.monotonic();
      report?.(`${((reportedMs - startedMs) / 1_000).toFixed(0)} s, ${next - seed} episodes`);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  process.off('unhandledRejection', onRejection);
  return { episodes: next - seed, counts, finding };
}

/**
 * No turn of the loop may be held up for longer. What a busy machine makes of one run is not believed before it comes again:
 * so many episodes are run so often, alone.
 */
const TURN_MS_MAX = 10;
const SUSPECTS_MAX = 20;
const RUNS = 3;

/** As `runEpisodes`. `suspects`: the episodes with a long turn; `turnMs`: the longest that came again. */
export async function runTimed(options: Omit<Options, 'onEpisode'>, work: { takeLongestMs(): number }) {
  const suspects = new Set<number>();
  const onEpisode = (episode: number) => {
    if (work.takeLongestMs() > TURN_MS_MAX) suspects.add(episode);
  };
  const ran = await runEpisodes({ ...options, onEpisode });
  let heldUp: string | undefined;
  let turnMs = 0;
  for (const episode of [...suspects].slice(0, SUSPECTS_MAX)) {
    let longestMs = Infinity;
    for (let i = 0; i < RUNS; i++) {
      work.takeLongestMs();
      await options.run(randomOf(episode), () => undefined);
      longestMs = Math.min(longestMs, work.takeLongestMs());
    }
    turnMs = Math.max(turnMs, longestMs);
    if (longestMs > TURN_MS_MAX) heldUp ??= `seed ${episode}: a turn is held up for ${longestMs} ms`;
  }
  return { ...ran, turnMs, suspects: suspects.size, heldUp };
}

/** What came of episodes from a seed on, in a line. */
export function summaryOf(
  seed: number,
  { episodes, counts, suspects, turnMs }: Awaited<ReturnType<typeof runTimed>>,
): string {
  const parts = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, n]) => `${name} ${n}`);
  return (
    `${episodes} episodes from seed ${seed}: ${parts.join(', ')}; ` +
    `${suspects} with a turn above ${TURN_MS_MAX} ms, of which none above ${turnMs.toFixed(1)} ms came again`
  );
}

/** Waits for so many turns of the event loop. */
export async function turns(n: number): Promise<void> {
  for (let i = 0; i < n; i++) await new Promise(setImmediate);
}

export async function until(isSo: () => boolean, what: () => string): Promise<void> {
  const startedMs = systemClock.monotonic();
  while (!isSo()) {
    if (systemClock.monotonic() - startedMs > HANG_MS) throw new Error(what());
    await turns(1);
  }
}
