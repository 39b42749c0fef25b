import { findMismatches } from '../../../deploys/usage/maintenance.ts';
import { systemClock } from '../../../shared/clock.ts';
import { spentOf } from '../../../shared/ledger/schema.ts';
import type { Store } from '../../../shared/store/open.ts';
import { type Answers, type Offer, offering, outcomes, soonMs } from '../load.ts';

/** When all is calm again: what is left is soon spent. */
const PER_SECOND = 1_500;
const ROUND_SECONDS = 2;
const ROUNDS_MAX = 60;

/** Offers in rounds until nobody has a credit left; gives all answers on the clock that began at `sinceMs` of the wall's. */
export async function spendRest(
  to: Omit<Offer, 'perSecond' | 'seconds' | 'startMs'>,
  sinceMs: number,
  signal: AbortSignal,
): Promise<Answers> {
  const all: Answers[] = [];
  for (let round = 0; round < ROUNDS_MAX && !signal.aborted; round++) {
    const startMs = soonMs();
    const answers = await offering({ ...to, perSecond: PER_SECOND, seconds: ROUND_SECONDS, startMs }, signal);
    all.push(answers.map((answer) => ({ ...answer, sentMs: answer.sentMs + startMs - sinceMs })));
    // The last credits may lie with a process that gives them back within a second: till then it is 429.
    if ((outcomes(answers)['out-of-credits'] ?? 0) === answers.length) break;
  }
  return all.flat();
}

/** Credits of the first account that the ledger says are spent, and how many accounts have books that differ. */
export async function booksOf(ledger: Store, signal: AbortSignal) {
  const mismatches = await findMismatches(ledger, systemClock, signal);
  return { spent: spentOf(ledger, 1), mismatches: mismatches?.length ?? Number.NaN };
}
