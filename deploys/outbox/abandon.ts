import type { Store } from '../../shared/store/open.ts';

/**
 * Gives up the events that wait for a block time which can never be known, because their chain is gone. To be called in
 * the transaction that forgets the chain.
 */
export function createAbandon(store: Store): (nowMs: number) => void {
  const cancel = store.prepare(`
    UPDATE deliveries
    SET state = 'cancelled', last_error = 'other_chain', next_attempt_at_ms = NULL, finished_at_ms = ?1
    WHERE state = 'queued' AND event_id IN (SELECT id FROM events WHERE released_at_ms IS NULL)`);
  const close = store.prepare('UPDATE events SET released_at_ms = ? WHERE released_at_ms IS NULL');
  return (nowMs) => {
    cancel.run(nowMs);
    close.run(nowMs);
  };
}
