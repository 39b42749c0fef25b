import type { Health } from '../health.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { WorkerState } from './worker.ts';

/** How long a delivery may be due before something is wrong. */
const DUE_MS_MAX = 300_000;

/** Whether deliveries are sent: ill while the queue cannot be used, or while what is due waits for more than five minutes. */
export function deliveryHealth(
  { trouble }: WorkerState,
  { due, oldestDueAtMs }: ReturnType<Outbox['backlog']>,
  nowMs: number,
): Health {
  if (trouble !== undefined)
    return { isWell: false, sentence: 'Deliveries cannot be recorded, so none are sent; the log says why.' };
  const waitedMs = nowMs - (oldestDueAtMs ?? nowMs);
  if (waitedMs <= DUE_MS_MAX) return { isWell: true, sentence: `${due} deliveries are due.` };
  return {
    isWell: false,
    sentence: `${due} deliveries are due, the oldest for ${Math.round(waitedMs / 60_000)} minutes.`,
  };
}
