import type { Verdict } from '../delivery/verdict.ts';
import { ATTEMPTS_MAX, retryAtMs } from '../delivery/schedule.ts';

export type DeliveryState =
  'queued' | 'attempting' | 'retry_scheduled' | 'delivered' | 'failed' | 'skipped' | 'cancelled';

/** What decides besides the verdict. `number` is absent for an attempt asked for by hand. */
export type Ended = Readonly<{
  state: DeliveryState;
  number: number | undefined;
  nextAttemptAtMs: number | undefined;
  finishedAtMs: number | undefined;
  isDeleted: boolean;
  isPaused: boolean;
}>;

/** A delivery's place after an attempt. `attempts` is given when it changes. */
export type Place = Readonly<{
  state: DeliveryState;
  nextAttemptAtMs: number | undefined;
  finishedAtMs: number | undefined;
  attempts?: number;
  isResent?: boolean;
}>;

/**
 * The table of spec 3.2, with what it leaves open:
 * - an attempt nobody knows the end of counts, and the next is due at once; as the sixth it is made again under its
 *   number, because a delivery must not fail without a known answer;
 * - a webhook that was deleted or paused meanwhile gets no further attempt;
 * - an attempt asked for by hand moves a delivery to `delivered` or not at all.
 */
export function afterAttempt(ended: Ended, verdict: Verdict, endedAtMs: number): Place {
  const { number } = ended;
  if (verdict.kind === 'succeeded')
    return final('delivered', ended.state === 'delivered' ? ended.finishedAtMs : endedAtMs);
  const isOver = ended.isDeleted || ended.isPaused;
  if (number === undefined) {
    const { state, nextAttemptAtMs, finishedAtMs } = ended;
    const isResent = verdict.kind === 'interrupted' && !isOver;
    return { state, nextAttemptAtMs, finishedAtMs, isResent };
  }
  if (isOver) return final(ended.isDeleted ? 'cancelled' : 'skipped', endedAtMs);
  if (verdict.kind === 'interrupted') {
    const attempts = Math.min(number, ATTEMPTS_MAX - 1);
    return { state: 'retry_scheduled', nextAttemptAtMs: endedAtMs, finishedAtMs: undefined, attempts };
  }
  const nextAttemptAtMs = retryAtMs(number, endedAtMs);
  if (nextAttemptAtMs === undefined) return final('failed', endedAtMs);
  return { state: 'retry_scheduled', nextAttemptAtMs, finishedAtMs: undefined };
}

function final(state: DeliveryState, finishedAtMs: number | undefined): Place {
  return { state, nextAttemptAtMs: undefined, finishedAtMs };
}
