import type { Store } from '../../shared/store/open.ts';
import type { Deploy } from '../watch/change.ts';
import { createReadings } from '../watch/readings.ts';
import type { Latest } from '../watch/watcher.ts';
import type { Enqueue } from './enqueue.ts';

type ChainVerdict = 'same-chain' | 'other-chain';

/**
 * Records a reading in one IMMEDIATE transaction (docs/decisions/outbox.md): the reading in place of the last one, deploys
 * that are new to the history, an event for each of `deploys`, and its delivery for each webhook that wants it. A crash leaves all
 * of it or nothing. A `genesisHash` that is not the stored one discards block times, history and waiting events instead, which
 * are another chain's; `undefined`: no backend told it. `nowMs` is when the events were detected, in Unix milliseconds.
 */
export function createRecord(store: Store, enqueue: Pick<Enqueue, 'deploys'>) {
  const { moveTo, replace } = createReadings(store);
  const cancel = store.prepare(`
    UPDATE deliveries
    SET state = 'cancelled', last_error = 'other_chain', next_attempt_at_ms = NULL, finished_at_ms = ?1
    WHERE state = 'queued' AND event_id IN (SELECT id FROM events WHERE released_at_ms IS NULL)`);
  const close = store.prepare('UPDATE events SET released_at_ms = ? WHERE released_at_ms IS NULL');

  const record = store.transaction(
    (
      latest: Latest,
      deploys: readonly Deploy[],
      genesisHash: string | undefined,
      nowMs: number,
    ): ChainVerdict => {
      const isOther = genesisHash !== undefined && moveTo(genesisHash);
      replace(latest);
      if (isOther) {
        cancel.run(nowMs);
        close.run(nowMs);
        return 'other-chain';
      }
      enqueue.deploys(deploys, nowMs);
      return 'same-chain';
    },
  );
  return record.immediate;
}
