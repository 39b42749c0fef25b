/** What became of a backend's calls lately: answers that began, and failures that were its fault. */
export type Recent = Readonly<{
  answered(): void;
  failed(): void;
  /** Says that ten seconds are over. */
  turn(): void;
  /** The sums of the last `RECENT_SECONDS` and what has begun since. */
  sums(): Readonly<{ answered: number; failed: number }>;
}>;

/** The time that is looked back on, in seconds. */
export const RECENT_SECONDS = 300;
export const TURN_SECONDS = 10;
const TURNS = RECENT_SECONDS / TURN_SECONDS;

/** Counting is an increment; what is old leaves with the turns. */
export function createRecent(): Recent {
  let now = { answered: 0, failed: 0 };
  let held = [now];

  return {
    answered: () => void now.answered++,
    failed: () => void now.failed++,
    turn() {
      now = { answered: 0, failed: 0 };
      held = [...held.slice(-TURNS), now];
    },
    sums: () =>
      held.reduce(
        (sum, one) => ({ answered: sum.answered + one.answered, failed: sum.failed + one.failed }),
        { answered: 0, failed: 0 },
      ),
  };
}
