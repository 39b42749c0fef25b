import type { EventKind } from './enqueue.ts';
import type { Store } from '../../shared/store/open.ts';
import type { DeliveryState } from './delivery-state.ts';

/** A delivery as a page shows it. Instants are Unix milliseconds. */
export type DeliveryRow = Readonly<{
  id: string;
  webhookId: string;
  eventKind: string;
  state: DeliveryState;
  attempts: number;
  nextAttemptAtMs: number | null;
  resendAtMs: number | null;
  lastStatus: number | null;
  lastError: string | null;
  createdAtMs: number;
  finishedAtMs: number | null;
  programId: string | null;
  label: string | null;
  deploySlot: number | null;
  /** Of its webhook. */
  url: string;
  /** How long its newest attempt took, in milliseconds; `null` before it has ended. */
  tookMs: number | null;
}>;

/** One attempt as a page shows it. The JSON members are as they were stored; the answer's body goes after 30 days. */
export type AttemptRow = Readonly<{
  n: number;
  number: number | null;
  trigger: 'auto' | 'manual';
  state: 'started' | 'succeeded' | 'failed' | 'interrupted' | 'blocked';
  url: string;
  startedAtMs: number;
  signedAt: number;
  endedAtMs: number | null;
  status: number | null;
  error: string | null;
  /** For operators: may name addresses. */
  detail: string | null;
  remoteAddress: string | null;
  phasesJson: string | null;
  requestHeadersJson: string | null;
  answerHeadersJson: string | null;
  answerBody: Uint8Array | null;
  answerBodyKind: 'whole' | 'cut' | 'incomplete' | null;
}>;

/** A delivery with the body it is sent with, absent while its event waits for its block time, and every attempt. */
export type Delivery = DeliveryRow & Readonly<{ body: Uint8Array | null; tries: readonly AttemptRow[] }>;

type ListPosition = Pick<DeliveryRow, 'createdAtMs' | 'id'>;

/** Conditions on the deliveries of an account; `after` is where the previous page ended. */
export type DeliveryFilter = Readonly<{
  webhookId?: string;
  state?: DeliveryState;
  eventKind?: EventKind;
  programId?: string;
  sinceMs?: number;
  after?: ListPosition;
  /** 1 to 100. */
  limit: number;
}>;

/** `next` is where to go on, even after a page without rows, because each page reads a bounded number of deliveries. */
export type DeliveryPage = Readonly<{ rows: readonly DeliveryRow[]; next: ListPosition | undefined }>;

/** Deliveries that one page reads to find those that fit. */
export const LOOKED_AT_MAX = 5_000;
/** Characters of an id that are needed to search for it: fewer would match too many. */
export const ID_PART_MIN = 8;

type Bound = Readonly<{ owner: number | string; atMs: number; id: string }>;
type FilterValues = Bound &
  Readonly<{ accountId: number; floorMs: number; floorId: string; limit: number }> &
  Readonly<Record<'state' | 'eventKind' | 'programId', string | null>>;

const LIMIT_MAX = 100;

const COLUMNS = `
  d.id, d.webhook_id AS webhookId, d.event_kind AS eventKind, d.state, d.attempts,
  d.next_attempt_at_ms AS nextAttemptAtMs, d.resend_at_ms AS resendAtMs, d.last_status AS lastStatus,
  d.last_error AS lastError, d.created_at_ms AS createdAtMs, d.finished_at_ms AS finishedAtMs,
  e.program_id AS programId, e.label, e.deploy_slot AS deploySlot, w.url,
  (SELECT ended_at_ms - started_at_ms FROM attempts WHERE delivery_id = d.id ORDER BY n DESC LIMIT 1) AS tookMs`;
/** CROSS JOIN keeps the order of the index on deliveries. Deliveries of deleted webhooks are not shown. */
const FROM = `
  FROM deliveries d CROSS JOIN webhooks w ON w.id = d.webhook_id LEFT JOIN events e ON e.id = d.event_id
  WHERE w.account_id = $accountId AND w.deleted_at_ms IS NULL`;
const BELOW = 'd.created_at_ms <= $atMs AND (d.created_at_ms < $atMs OR d.id > $id)';

/** Deliveries of all webhooks of an account, read by index, a bounded number at a time. */
export function createAccountDeliveries(store: Store) {
  const ofAccount = statementsBy(store, 'd.account_id');
  const ofWebhook = statementsBy(store, 'd.webhook_id');
  const byPrefix = store.prepare<DeliveryRow, { accountId: number; from: string; to: string }>(`
    SELECT ${COLUMNS} ${FROM} AND d.id >= $from AND d.id < $to ORDER BY d.id LIMIT ${LIMIT_MAX}`);
  const one = store.prepare<Omit<Delivery, 'tries'>, { accountId: number; id: string }>(`
    SELECT d.body, ${COLUMNS} ${FROM} AND d.id = $id`);
  const attempts = store.prepare<AttemptRow, [string]>(`
    SELECT n, number, trigger, state, url, started_at_ms AS startedAtMs, signed_at AS signedAt,
      ended_at_ms AS endedAtMs, status, error, detail, remote_address AS remoteAddress, phases_json AS phasesJson,
      request_headers_json AS requestHeadersJson, answer_headers_json AS answerHeadersJson,
      answer_body AS answerBody, answer_body_kind AS answerBodyKind
    FROM attempts WHERE delivery_id = ? ORDER BY n`);
  const nextTry = store.prepare<{ at: number | null }, [string]>(`
    SELECT min(next_attempt_at_ms) AS at FROM deliveries WHERE webhook_id = ? AND state = 'retry_scheduled'`);
  const lastError = store.prepare<{ error: string }, [string]>(`
    SELECT last_error AS error FROM deliveries
    WHERE webhook_id = ? AND last_error IS NOT NULL AND state IN ('failed', 'retry_scheduled')
    ORDER BY created_at_ms DESC, id LIMIT 1`);

  return {
    page(accountId: number, filter: DeliveryFilter): DeliveryPage {
      const limit = Math.max(1, Math.min(filter.limit, LIMIT_MAX));
      const { after, sinceMs = 0, webhookId } = filter;
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
        state: filter.state ?? null,
        eventKind: filter.eventKind ?? null,
        programId: filter.programId ?? null,
        limit: limit + 1,
      });
      const rows = found.slice(0, limit);
      const last = found.length > limit ? rows.at(-1) : undefined;
      return { rows, next: positionOf(last ?? (isOlder ? end : undefined)) };
    },
    /** Those whose id begins with `idPart`; none for less than `ID_PART_MIN` characters. */
    search(accountId: number, idPart: string): readonly DeliveryRow[] {
      const from = idPart.toLowerCase();
      if (from.length < ID_PART_MIN || !/^[0-9a-f-]{1,36}$/.test(from)) return [];
      return byPrefix.all({ accountId, from, to: `${from}g` });
    },
    find(accountId: number, id: string): Delivery | undefined {
      const row = one.get({ accountId, id });
      return row === null ? undefined : { ...row, tries: attempts.all(id) };
    },
    /** The last error of a failing webhook, and when one of its deliveries is retried (Unix milliseconds). */
    trouble: (webhookId: string) => ({
      lastError: lastError.get(webhookId)?.error,
      nextTryAtMs: nextTry.get(webhookId)?.at ?? undefined,
    }),
  };
}

export type AccountDeliveries = ReturnType<typeof createAccountDeliveries>;

/** `edge` is the last delivery that a page reads; nothing when there are fewer. */
function statementsBy(store: Store, owner: 'd.account_id' | 'd.webhook_id') {
  return {
    edge: store.prepare<ListPosition, Bound>(`
      SELECT d.created_at_ms AS createdAtMs, d.id FROM deliveries d WHERE ${owner} = $owner AND ${BELOW}
      ORDER BY d.created_at_ms DESC, d.id LIMIT 1 OFFSET ${LOOKED_AT_MAX - 1}`),
    list: store.prepare<DeliveryRow, FilterValues>(`
      SELECT ${COLUMNS} ${FROM} AND ${owner} = $owner AND ${BELOW}
        AND d.created_at_ms >= $floorMs AND (d.created_at_ms > $floorMs OR d.id <= $floorId)
        AND ($state IS NULL OR d.state = $state) AND ($eventKind IS NULL OR d.event_kind = $eventKind)
        AND ($programId IS NULL OR e.program_id = $programId)
      ORDER BY d.created_at_ms DESC, d.id LIMIT $limit`),
  };
}

function positionOf(row: ListPosition | undefined): ListPosition | undefined {
  return row && { createdAtMs: row.createdAtMs, id: row.id };
}

export type Reason = Readonly<{ reason: string; attempts: number; lastAtMs: number }>;

/** An attempt that failed or was blocked. Of its URL only the host is shown. */
export type WrongAttempt = Readonly<{
  deliveryId: string;
  n: number;
  /** 1 to 6; `null` for a manual one. */
  number: number | null;
  accountId: number;
  webhookId: string;
  host: string;
  state: 'failed' | 'blocked';
  error: string | null;
  startedAtMs: number;
  deliveryState: DeliveryState;
}>;

/** Counts end here: they are for the eye. */
export const COUNT_MAX = 100_000;
/** The newest attempts whose reasons are counted, and the webhooks whose hosts are. */
const COUNTED_MAX = 2_000;
const HOSTS_MAX = 20;

export type ReadQueue = ReturnType<typeof createReadQueue>;
export type QueueState = ReturnType<ReadQueue['state']>;

export function createReadQueue(store: Store) {
  const bounded = (from: string) => {
    const count = `SELECT count(*) AS n FROM (SELECT 1 FROM ${from} LIMIT ${COUNT_MAX})`;
    const statement = store.prepare<{ n: number }, [] | [number]>(count);
    return (...args: [] | [number]) => statement.get(...args)?.n ?? 0;
  };
  const soonest = (where: string) => {
    const min = `SELECT min(due_at_ms) AS at FROM deliveries WHERE ${where}`;
    const statement = store.prepare<{ at: number | null }, [number]>(min);
    return (nowMs: number) => statement.get(nowMs)?.at ?? undefined;
  };
  const due = bounded('deliveries WHERE due_at_ms <= ?');
  const later = bounded('deliveries WHERE due_at_ms > ?');
  const leased = bounded('deliveries WHERE lease_token IS NOT NULL');
  const waiting = bounded('events WHERE released_at_ms IS NULL');
  const oldest = soonest('due_at_ms <= ?');
  const next = soonest('due_at_ms > ?');
  const reasons = { failed: reasonsOf('failed'), blocked: reasonsOf('blocked') };
  const wrong = { failed: wrongOf('failed'), blocked: wrongOf('blocked') };
  const hosts = store.prepare<Readonly<{ host: string; webhooks: number; sinceMs: number }>, []>(`
    SELECT host, count(*) AS webhooks, min(since) AS sinceMs FROM (
      SELECT host, failing_since_ms AS since FROM webhooks
      WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL ORDER BY failing_since_ms, id LIMIT ${COUNTED_MAX})
    GROUP BY host ORDER BY webhooks DESC, sinceMs LIMIT ${HOSTS_MAX}`);

  function reasonsOf(state: 'failed' | 'blocked') {
    return store.prepare<Reason, [number]>(`
      SELECT coalesce(error, 'unknown') AS reason, count(*) AS attempts, max(started_at_ms) AS lastAtMs FROM (
        SELECT error, started_at_ms FROM attempts WHERE state = '${state}' AND started_at_ms >= ?
        ORDER BY started_at_ms DESC LIMIT ${COUNTED_MAX})
      GROUP BY reason ORDER BY attempts DESC, reason`);
  }

  function wrongOf(state: 'failed' | 'blocked') {
    return store.prepare<WrongAttempt, [number]>(`
      SELECT a.delivery_id AS deliveryId, a.n, a.number, w.account_id AS accountId, w.id AS webhookId, w.host, a.state,
        a.error, a.started_at_ms AS startedAtMs, d.state AS deliveryState
      FROM (SELECT * FROM attempts WHERE state = '${state}' ORDER BY started_at_ms DESC LIMIT ?) a
      JOIN deliveries d ON d.id = a.delivery_id JOIN webhooks w ON w.id = d.webhook_id
      ORDER BY a.started_at_ms DESC`);
  }

  return {
    /** The queue of all accounts. Instants are Unix milliseconds; counts end at `COUNT_MAX`. */
    state: (nowMs: number) => ({
      due: due(nowMs),
      oldestDueAtMs: oldest(nowMs),
      later: later(nowMs),
      nextDueAtMs: next(nowMs),
      inFlight: leased(),
      eventsWaiting: waiting(),
    }),
    /** Errors of attempts since then, the most frequent first; of the newest `COUNTED_MAX` attempts. */
    reasons: (state: 'failed' | 'blocked', sinceMs: number): readonly Reason[] => reasons[state].all(sinceMs),
    wrongAttempts(limit: number): readonly WrongAttempt[] {
      const most = Math.max(1, Math.min(limit, LIMIT_MAX));
      return [...wrong.failed.all(most), ...wrong.blocked.all(most)]
        .sort((a, b) => b.startedAtMs - a.startedAtMs)
        .slice(0, most);
    },
    /** Hosts of failing webhooks, those with the most first; of the `COUNTED_MAX` that fail the longest. */
    failingHosts: () => hosts.all(),
  };
}
