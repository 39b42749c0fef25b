import type { Slot } from '@solana/kit';
import type { Store } from '../../shared/store/open.ts';
import { upgradeBody } from '../delivery/event.ts';

export type Release = Readonly<{
  /**
   * Writes the bodies of deliveries whose event's block time is known by now, at most 500 at a time, so that they fall
   * due. `more` means that another call has more to do.
   */
  release(nowMs: number): 'all' | 'more';
  /** The slots that events wait for the block time of, newest first, and since when. */
  awaited(): Awaited[];
}>;

/** A slot without a block time, and when the first event that needs it was detected. */
export type Awaited = Readonly<{ slot: Slot; sinceMs: number }>;

/** Bodies in one transaction: some milliseconds in which nothing else is answered. */
const BODIES_MAX = 500;

type EventRow = {
  id: number;
  program_id: string;
  label: string;
  previous_slot: number;
  deploy_slot: number;
  created_at_ms: number;
  unix_seconds: number;
};

/** Events wait in `store` itself for their block time (spec 2.4), so a restart loses none. */
export function createRelease(store: Store): Release {
  const known = store.prepare<EventRow, []>(`
    SELECT e.*, b.unix_seconds FROM events e JOIN block_times b ON b.slot = e.deploy_slot
    WHERE e.released_at_ms IS NULL LIMIT 1`);
  const bodiless = store.prepare<{ id: string }, [number, number]>(
    'SELECT id FROM deliveries WHERE event_id = ? AND body IS NULL LIMIT ?',
  );
  const give = store.prepare(`
    UPDATE deliveries SET body = ?1, next_attempt_at_ms = iif(state = 'queued', ?2, NULL) WHERE id = ?3`);
  const close = store.prepare('UPDATE events SET released_at_ms = ? WHERE id = ?');
  const awaited = store.prepare<{ deploy_slot: number; since_ms: number }, []>(`
    SELECT deploy_slot, min(created_at_ms) AS since_ms FROM events WHERE released_at_ms IS NULL
    GROUP BY deploy_slot ORDER BY deploy_slot DESC`);

  const releaseSome = store.transaction((event: EventRow, nowMs: number) => {
    const rows = bodiless.all(event.id, BODIES_MAX);
    for (const { id } of rows) give.run(upgradeBody(id, eventFrom(event)), nowMs, id);
    if (rows.length < BODIES_MAX) close.run(nowMs, event.id);
  });

  return {
    release: (nowMs) => {
      const event = known.get();
      if (!event) return 'all';
      releaseSome.immediate(event, nowMs);
      return 'more';
    },
    awaited: () =>
      awaited.all().map(({ deploy_slot, since_ms }) => ({ slot: BigInt(deploy_slot), sinceMs: since_ms })),
  };
}

function eventFrom(row: EventRow) {
  return {
    programId: row.program_id,
    label: row.label,
    previousSlot: row.previous_slot,
    deploySlot: row.deploy_slot,
    deployedAt: row.unix_seconds,
    detectedAtMs: row.created_at_ms,
  };
}
