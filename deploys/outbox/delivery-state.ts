import { unreachable } from '../../shared/brand.ts';
import type { Verdict } from './outcome.ts';

export const DELIVERY_STATES = [
  'queued',
  'attempting',
  'retry_scheduled',
  'delivered',
  'failed',
  'skipped',
  'cancelled',
] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** A delivery that was stopped before an answer: its webhook was paused; or that was deleted, or its chain replaced. */
export type StoppedState = 'skipped' | 'cancelled';

/**
 * How far a delivery is, as its row has it; instants are Unix milliseconds. `attempts` counts automatic ones, the one
 * under way included; at `resendAtMs` one by hand is due.
 */
export type DeliveryProgress = Readonly<{ attempts: number; resendAtMs: number | null }> &
  (
    | Readonly<{ state: 'queued' | 'retry_scheduled'; nextAttemptAtMs: number; finishedAtMs: null }>
    | Readonly<{ state: 'attempting'; nextAttemptAtMs: null; finishedAtMs: null }>
    | Readonly<{ state: FinalState; nextAttemptAtMs: null; finishedAtMs: number }>
  );
type FinalState = 'delivered' | 'failed' | StoppedState;

/** The columns of a row `d` for it, and what writes them. */
export const PROGRESS = `d.state, d.attempts, d.next_attempt_at_ms AS nextAttemptAtMs, d.finished_at_ms AS finishedAtMs,
  d.resend_at_ms AS resendAtMs`;
export const SET_PROGRESS = `state = $state, attempts = $attempts, next_attempt_at_ms = $nextAttemptAtMs,
  finished_at_ms = $finishedAtMs, resend_at_ms = $resendAtMs`;

export type DeliveryEvent =
  /** An automatic attempt is claimed, or one by hand. */
  | Readonly<{ kind: 'claimed' | 'claimed-by-hand' }>
  /** That attempt ended; `stoppedAs`: meanwhile the webhook was paused or deleted. */
  | Readonly<{
      kind: 'ended' | 'ended-by-hand';
      verdict: Verdict;
      stoppedAs: StoppedState | null;
      atMs: number;
    }>
  /** To many at once it happens in SQL, in half the time (`webhooks/change.ts`, `record.ts`). */
  | Readonly<{ kind: 'stopped'; stoppedAs: StoppedState; atMs: number }>;

/** Waits before the attempts 2 to 6, each from the end of the failed one (docs/spec.md 4.3). */
export const RETRY_DELAYS_MS: readonly number[] = [30_000, 120_000, 600_000, 1_800_000, 7_200_000];

/** Automatic attempts of a delivery, the first included (docs/spec.md 4.3). */
export const ATTEMPTS_MAX = RETRY_DELAYS_MS.length + 1;

/** The longest wait; whatever is due later was scheduled while the clock was wrong. */
export const WAIT_MS_MAX = 7_200_000;

/**
 * A delivery from its event to its end (docs/spec.md 4.3), with what that leaves open.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> queued: a deploy, or a test
 *   [*] --> skipped: a deploy, while the webhook is paused
 *   queued --> attempting: claimed
 *   queued --> skipped: stopped
 *   queued --> cancelled: stopped
 *   attempting --> delivered: ended with a 2xx
 *   attempting --> retry_scheduled: ended otherwise
 *   attempting --> failed: the sixth ended otherwise
 *   attempting --> skipped: ended otherwise, and stopped meanwhile
 *   attempting --> cancelled: ended otherwise, and stopped meanwhile
 *   retry_scheduled --> attempting: claimed
 *   retry_scheduled --> skipped: stopped
 *   retry_scheduled --> cancelled: stopped
 *   retry_scheduled --> delivered: an attempt by hand ended with a 2xx
 *   failed --> delivered: an attempt by hand ended with a 2xx
 *   skipped --> delivered: an attempt by hand ended with a 2xx
 *   cancelled --> delivered: an attempt by hand ended with a 2xx
 * ```
 *
 * - An interrupted attempt, whose answer is unknown, counts, and the next is due at once. The sixth is repeated under its
 *   number, because a delivery must not fail without a known answer.
 * - An attempt by hand is due beside any state but `queued` and `attempting`, until it is claimed or the delivery stopped. It
 *   moves a delivery to `delivered` or not at all; one that was interrupted is due again.
 */
export function nextDelivery(delivery: DeliveryProgress, event: DeliveryEvent): DeliveryProgress {
  const { state, attempts, resendAtMs } = delivery;
  const isWaiting = state === 'queued' || state === 'retry_scheduled';
  const end = (as: FinalState, finishedAtMs: number) =>
    ({ state: as, attempts, resendAtMs, nextAttemptAtMs: null, finishedAtMs }) as const;
  const retry = (nextAttemptAtMs: number, made: number) =>
    ({ state: 'retry_scheduled', attempts: made, resendAtMs, nextAttemptAtMs, finishedAtMs: null }) as const;

  switch (event.kind) {
    case 'claimed': {
      const attempting = { state: 'attempting', nextAttemptAtMs: null, finishedAtMs: null } as const;
      return isWaiting ? { ...attempting, attempts: attempts + 1, resendAtMs } : delivery;
    }
    case 'claimed-by-hand':
      return { ...delivery, resendAtMs: null };
    case 'ended': {
      const { verdict, stoppedAs, atMs } = event;
      if (state !== 'attempting') return delivery;
      if (verdict.kind === 'succeeded') return end('delivered', atMs);
      if (stoppedAs !== null) return end(stoppedAs, atMs);
      if (verdict.kind === 'interrupted') return retry(atMs, Math.min(attempts, ATTEMPTS_MAX - 1));
      const delayMs = RETRY_DELAYS_MS[attempts - 1];
      return delayMs === undefined ? end('failed', atMs) : retry(atMs + delayMs, attempts);
    }
    case 'ended-by-hand': {
      const { verdict, stoppedAs, atMs } = event;
      if (state === 'queued' || state === 'attempting') return delivery;
      if (verdict.kind === 'succeeded') return state === 'delivered' ? delivery : end('delivered', atMs);
      const isRepeated = verdict.kind === 'interrupted' && stoppedAs === null;
      return isRepeated ? { ...delivery, resendAtMs: atMs } : delivery;
    }
    case 'stopped':
      return { ...(isWaiting ? end(event.stoppedAs, event.atMs) : delivery), resendAtMs: null };
    default:
      return unreachable(event);
  }
}
