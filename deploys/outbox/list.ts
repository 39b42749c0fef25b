import type { Store } from '../../shared/store/open.ts';
import type { DeliveryState } from './after-attempt.ts';

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

export type Page = Readonly<{
  webhookId: string;
  /** Only deliveries in this state. */
  state?: DeliveryState;
  /** The last delivery of the page before. */
  after?: Pick<DeliveryRow, 'createdAtMs' | 'id'>;
  /** 1 to 100. */
  limit: number;
}>;

/** What a `DeliveryRow` is made of, from deliveries as `d` and events as `e`. */
export const DELIVERY_COLUMNS = `
  d.id, d.webhook_id AS webhookId, d.event_kind AS eventKind, d.state, d.attempts,
  d.next_attempt_at_ms AS nextAttemptAtMs, d.resend_at_ms AS resendAtMs, d.last_status AS lastStatus,
  d.last_error AS lastError, d.created_at_ms AS createdAtMs, d.finished_at_ms AS finishedAtMs,
  e.program_id AS programId, e.label, e.deploy_slot AS deploySlot`;
const COLUMNS = `${DELIVERY_COLUMNS}
  FROM deliveries d LEFT JOIN events e ON e.id = d.event_id`;
const LIMIT_MAX = 100;

/** Deliveries and attempts for pages; on a connection that only reads they do not wait for the worker. */
export function createList(store: Store) {
  const page = store.prepare<
    DeliveryRow,
    { webhookId: string; state: string | null; atMs: number; id: string; limit: number }
  >(`
    SELECT ${COLUMNS}
    WHERE d.webhook_id = $webhookId AND ($state IS NULL OR d.state = $state)
      AND d.created_at_ms <= $atMs AND (d.created_at_ms < $atMs OR d.id > $id)
    ORDER BY d.created_at_ms DESC, d.id LIMIT $limit`);
  const one = store.prepare<DeliveryRow & { body: Uint8Array | null }, [string]>(
    `SELECT d.body, ${COLUMNS} WHERE d.id = ?`,
  );
  const attempts = store.prepare<AttemptRow, [string]>(`
    SELECT n, number, trigger, state, url, started_at_ms AS startedAtMs, signed_at AS signedAt,
      ended_at_ms AS endedAtMs, status, error, detail, remote_address AS remoteAddress, phases_json AS phasesJson,
      request_headers_json AS requestHeadersJson, answer_headers_json AS answerHeadersJson,
      answer_body AS answerBody, answer_body_kind AS answerBodyKind
    FROM attempts WHERE delivery_id = ? ORDER BY n`);

  return {
    /** Newest first, and by id where they are of one instant. */
    list: ({ webhookId, state, after, limit }: Page): DeliveryRow[] =>
      page.all({
        webhookId,
        state: state ?? null,
        atMs: after?.createdAtMs ?? Number.MAX_SAFE_INTEGER,
        id: after?.id ?? '',
        limit: Math.max(1, Math.min(limit, LIMIT_MAX)),
      }),
    /** One delivery with the body it is sent with, which is absent while its event waits for its block time. */
    find: (deliveryId: string): (DeliveryRow & { body: Uint8Array | null }) | undefined =>
      one.get(deliveryId) ?? undefined,
    attemptsOf: (deliveryId: string): AttemptRow[] => attempts.all(deliveryId),
  };
}
