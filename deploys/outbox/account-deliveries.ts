import type { Store } from '../../shared/store/open.ts';
import type { DeliveryState } from './after-attempt.ts';
import { DELIVERY_COLUMNS, type DeliveryRow } from './list.ts';

/** A delivery among those of all webhooks of its account. */
export type AccountDelivery = DeliveryRow &
  Readonly<{
    /** Where its webhook leads now. */
    url: string;
    /** How long its newest attempt took, in milliseconds; `null` before it has ended. */
    tookMs: number | null;
  }>;

/** A place in a list that is sorted by newest first. */
export type Place = Pick<DeliveryRow, 'createdAtMs' | 'id'>;

/** Which deliveries of an account are wanted, all members together; `after` is the place the page before ended at. */
export type DeliveryWish = Readonly<{
  webhookId?: string;
  state?: DeliveryState;
  eventKind?: 'program.upgraded' | 'ping';
  programId?: string;
  sinceMs?: number;
  after?: Place;
  /** 1 to 100. */
  limit: number;
}>;

/** `next` is where to go on; it may be there for a page without rows, because one page looks at so many at most. */
export type DeliveryPage = Readonly<{ rows: readonly AccountDelivery[]; next: Place | undefined }>;

/** Deliveries that one page looks at to find those that are wanted. */
export const LOOKED_AT_MAX = 5_000;
/** Characters of an id that must be known to search for it: fewer would fit too many. */
export const ID_PART_MIN = 8;
const LIMIT_MAX = 100;

/** `nextTryAtMs` is absent when nothing waits to be tried again. */
export type Trouble = Readonly<{ lastError: string | undefined; nextTryAtMs: number | undefined }>;

type Bound = Readonly<{ owner: number | string; atMs: number; id: string }>;
type Filter = Bound &
  Readonly<{
    accountId: number;
    floorMs: number;
    floorId: string;
    state: string | null;
    eventKind: string | null;
    programId: string | null;
    limit: number;
  }>;

/** CROSS JOIN, because the order is that of the index on deliveries. Deleted webhooks and what they were sent are gone. */
const FROM = `
  SELECT ${DELIVERY_COLUMNS}, w.url,
    (SELECT ended_at_ms - started_at_ms FROM attempts WHERE delivery_id = d.id ORDER BY n DESC LIMIT 1) AS tookMs
  FROM deliveries d CROSS JOIN webhooks w ON w.id = d.webhook_id LEFT JOIN events e ON e.id = d.event_id
  WHERE w.account_id = $accountId AND w.deleted_at_ms IS NULL`;
const BELOW = 'd.created_at_ms <= $atMs AND (d.created_at_ms < $atMs OR d.id > $id)';

/** Deliveries of all webhooks of an account, for pages: by index, a bounded part of them at a time. */
export function createAccountDeliveries(store: Store) {
  const ofAccount = statementsBy(store, 'd.account_id');
  const ofWebhook = statementsBy(store, 'd.webhook_id');
  const byId = store.prepare<AccountDelivery, { accountId: number; from: string; to: string; limit: number }>(
    `${FROM} AND d.id >= $from AND d.id < $to ORDER BY d.id LIMIT $limit`,
  );
  const nextTry = store.prepare<{ at: number | null }, [string]>(`
    SELECT min(next_attempt_at_ms) AS at FROM deliveries WHERE webhook_id = ? AND state = 'retry_scheduled'`);
  const lastError = store.prepare<{ error: string }, [string]>(`
    SELECT last_error AS error FROM deliveries
    WHERE webhook_id = ? AND last_error IS NOT NULL AND state IN ('failed', 'retry_scheduled')
    ORDER BY created_at_ms DESC, id LIMIT 1`);

  return {
    page(accountId: number, wish: DeliveryWish): DeliveryPage {
      const limit = Math.max(1, Math.min(wish.limit, LIMIT_MAX));
      const { after, sinceMs = 0, webhookId } = wish;
      const { edge, list } = webhookId === undefined ? ofAccount : ofWebhook;
      const bound = {
        owner: webhookId ?? accountId,
        atMs: after?.createdAtMs ?? Number.MAX_SAFE_INTEGER,
        id: after?.id ?? '',
      };
      const end = edge.get(bound);
      const isOlder = end !== null && end.createdAtMs >= sinceMs;
      const found = list.all({
        ...bound,
        accountId,
        floorMs: isOlder ? end.createdAtMs : sinceMs,
        floorId: isOlder ? end.id : '~',
        state: wish.state ?? null,
        eventKind: wish.eventKind ?? null,
        programId: wish.programId ?? null,
        limit: limit + 1,
      });
      const rows = found.slice(0, limit);
      const last = found.length > limit ? rows.at(-1) : undefined;
      return { rows, next: placeOf(last ?? (isOlder ? end : undefined)) };
    },
    /** Those whose id begins so; none for less than `ID_PART_MIN` characters. */
    search(accountId: number, idPart: string): readonly AccountDelivery[] {
      const from = idPart.toLowerCase();
      if (from.length < ID_PART_MIN || !/^[0-9a-f-]{1,36}$/.test(from)) return [];
      return byId.all({ accountId, from, to: `${from}g`, limit: LIMIT_MAX });
    },
    find: (accountId: number, id: string): AccountDelivery | undefined =>
      byId.get({ accountId, from: id, to: `${id} `, limit: 1 }) ?? undefined,
    /** What a webhook that fails last failed with, and when one of its deliveries is tried again (Unix milliseconds). */
    trouble: (webhookId: string): Trouble => ({
      lastError: lastError.get(webhookId)?.error,
      nextTryAtMs: nextTry.get(webhookId)?.at ?? undefined,
    }),
  };
}

export type AccountDeliveries = ReturnType<typeof createAccountDeliveries>;

/** `edge` is the last delivery that a page looks at; nothing when there are fewer. */
function statementsBy(store: Store, owner: 'd.account_id' | 'd.webhook_id') {
  return {
    edge: store.prepare<Place, Bound>(`
      SELECT d.created_at_ms AS createdAtMs, d.id FROM deliveries d WHERE ${owner} = $owner AND ${BELOW}
      ORDER BY d.created_at_ms DESC, d.id LIMIT 1 OFFSET ${LOOKED_AT_MAX - 1}`),
    list: store.prepare<AccountDelivery, Filter>(`
      ${FROM} AND ${owner} = $owner AND ${BELOW}
        AND d.created_at_ms >= $floorMs AND (d.created_at_ms > $floorMs OR d.id <= $floorId)
        AND ($state IS NULL OR d.state = $state) AND ($eventKind IS NULL OR d.event_kind = $eventKind)
        AND ($programId IS NULL OR e.program_id = $programId)
      ORDER BY d.created_at_ms DESC, d.id LIMIT $limit`),
  };
}

function placeOf(row: Place | undefined): Place | undefined {
  return row && { createdAtMs: row.createdAtMs, id: row.id };
}
