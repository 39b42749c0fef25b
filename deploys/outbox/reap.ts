import type { Store } from '../../shared/store/open.ts';
import { WAIT_MS_MAX } from '../delivery/schedule.ts';
import { LEASE_MS } from './claim.ts';
import type { Finish } from './finish.ts';

type LeasedRow = {
  delivery_id: string;
  webhook_id: string;
  lease_token: string;
  n: number;
  number: number | null;
};

/**
 * Gives back what a process took with it when it died: attempts whose lease has run out end as `interrupted`. `mine`
 * are the deliveries this process is attempting; they are never reaped, however late. To be called in a transaction.
 */
export function createReap(store: Store, finish: Finish) {
  const expired = store.prepare<LeasedRow, [number]>(`
    SELECT d.id AS delivery_id, d.webhook_id, d.lease_token, a.n, a.number
    FROM deliveries d JOIN attempts a ON a.delivery_id = d.id AND a.state = 'started'
    WHERE d.lease_token IS NOT NULL AND d.lease_until_ms <= ?`);
  const capWaits = store.prepare(`
    UPDATE deliveries SET next_attempt_at_ms = min(next_attempt_at_ms, ?1), resend_at_ms = min(resend_at_ms, ?1)
    WHERE due_at_ms > ?1`);
  const capLeases = store.prepare(
    'UPDATE deliveries SET lease_until_ms = ?1 WHERE lease_token IS NOT NULL AND lease_until_ms > ?1',
  );

  /** How many were given back. */
  return function reap(nowMs: number, mine: ReadonlySet<string>): number {
    // Only a clock that was ahead when they were written makes these; a wait never grows by the clock being put right.
    capWaits.run(nowMs + WAIT_MS_MAX);
    capLeases.run(nowMs + LEASE_MS);
    let reaped = 0;
    for (const row of expired.all(nowMs)) {
      if (mine.has(row.delivery_id)) continue;
      const claim = {
        deliveryId: row.delivery_id,
        webhookId: row.webhook_id,
        token: row.lease_token,
        n: row.n,
        number: row.number ?? undefined,
      };
      finish({
        claim,
        verdict: { kind: 'interrupted' },
        sent: undefined,
        headers: undefined,
        endedAtMs: nowMs,
      });
      reaped++;
    }
    return reaped;
  };
}
