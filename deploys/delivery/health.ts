import type { Health } from '../health.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { WorkerState } from './worker.ts';

/** How long a delivery may be due before something is wrong. */
const DUE_MS_MAX = 300_000;

/**
 * Whether deliveries are sent: ill while the queue cannot be used, or while what has been due for five minutes waits
 * beside no attempt at all. What waits for its turn behind a receiver that hangs is the receiver's fault, and no
 * receiver can make this service look ill.
 */
export function deliveryHealth(
  { trouble, underWay }: WorkerState,
  { due, oldestDueAtMs }: ReturnType<Outbox['backlog']>,
  nowMs: number,
): Health {
  if (trouble !== undefined)
    return { isWell: false, sentence: 'Deliveries cannot be recorded, so none are sent; the log says why.' };
  const waitedMs = nowMs - (oldestDueAtMs ?? nowMs);
  if (waitedMs <= DUE_MS_MAX || underWay > 0) return { isWell: true, sentence: `${due} deliveries are due.` };
  return {
    isWell: false,
    sentence: `${due} deliveries are due, the oldest for ${Math.round(waitedMs / 60_000)} minutes.`,
  };
}
