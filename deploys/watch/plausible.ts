import type { Reading } from './program-state.ts';

/** Programs that may be gone from one reading to the next, whatever their share of all. */
const VANISHED_MAX = 9;

/** How many programs are `missing` in `after` that were there in `before`, and how many were there. */
export type Vanished = Readonly<{ vanished: number; present: number }>;

/**
 * Tells of a reading in which more than half of the programs, and at least ten, are gone at once: rather than closed
 * in one minute they are unknown to a backend that has lost its accounts. `undefined` is a reading to believe.
 */
export function implausibleIn(before: Reading['programs'], after: Reading): Vanished | undefined {
  let [present, vanished] = [0, 0];
  for (const [program, { status }] of before) {
    if (status === 'missing') continue;
    present++;
    if (after.programs.get(program)?.status === 'missing') vanished++;
  }
  return vanished > VANISHED_MAX && 2 * vanished > present ? { vanished, present } : undefined;
}
