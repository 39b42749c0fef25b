import type { Store } from '../../shared/store/open.ts';
import { codeOf } from '../../shared/store/private.ts';
import { type ClaimedDelivery, createClaim, LEASE_MS } from './claim.ts';
import {
  type DeliveryProgress,
  nextDelivery,
  PROGRESS,
  SET_PROGRESS,
  type StoppedState,
  WAIT_MS_MAX,
} from './delivery-state.ts';
import { createRelease } from './enqueue.ts';
import type { Sent, Verdict } from './outcome.ts';

/** The queue, whose whole state is in `store`. `random` gives n uniform bytes. */
export function createOutbox(store: Store, random: (bytes: number) => Uint8Array) {
  const { release, awaited } = createRelease(store);
  const finish = createFinish(store);
  const finishAll = store.transaction((results: readonly AttemptResult[]) =>
    results.map((result) => unlessUnwritable(() => finish(result))),
  );
  const reap = store.transaction(createReap(store, finish));
  const claim = createClaim(store, random);
  const advanceDue = store.prepare(`
    UPDATE deliveries SET next_attempt_at_ms = next_attempt_at_ms - ?1, resend_at_ms = resend_at_ms - ?1
    WHERE due_at_ms IS NOT NULL`);
  const isDue = store.prepare('SELECT 1 FROM deliveries WHERE due_at_ms <= ? LIMIT 1');
  const next = store.prepare<{ at: number | null }, [number]>(`
    SELECT min(due_at_ms) AS at FROM deliveries WHERE due_at_ms > ?`);
  const backlog = store.prepare<{ due: number; at: number | null }, [number]>(`
    SELECT count(*) AS due, min(due_at_ms) AS at FROM deliveries WHERE due_at_ms <= ?`);
  return {
    release,
    awaited,
    isDue: (nowMs: number): boolean => isDue.get(nowMs) !== null,
    // Usually nothing is due, which needs no write lock.
    claim: (nowMs: number, underWay: Iterable<ClaimedDelivery>): readonly ClaimedDelivery[] =>
      isDue.get(nowMs) === null ? [] : claim(nowMs, underWay),
    finish: (results: readonly AttemptResult[]): readonly RecordResult[] => finishAll.immediate(results),
    reap: (nowMs: number, mine: ReadonlySet<string>): number => reap.immediate(nowMs, mine),
    advanceDue: (byMs: number) => void advanceDue.run(byMs),
    nextDueAtMs: (nowMs: number): number | undefined => next.get(nowMs)?.at ?? undefined,
    backlog: (nowMs: number) => {
      const { due, at } = backlog.get(nowMs) ?? { due: 0, at: null };
      return { due, oldestDueAtMs: at ?? undefined };
    },
  };
}

/** The queue as the worker needs it. Instants are Unix milliseconds. Every function is one IMMEDIATE transaction, or throws. */
export type Outbox = ReturnType<typeof createOutbox>;

/** A single result that the schema rejects must not block all others; a failing disk or lock fails them all. */
function unlessUnwritable(finish: () => RecordResult): RecordResult {
  try {
    return finish();
  } catch (error) {
    if (/^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG)/.test(codeOf(error))) return 'unwritable';
    throw error;
  }
}

/** How a claimed attempt ended. `headers` are those of the event as sent; `sent` is absent when nothing was. */
export type AttemptResult = Readonly<{
  claim: ClaimedDelivery;
  verdict: Verdict;
  sent: Sent | undefined;
  headers: Readonly<Record<string, string>> | undefined;
  endedAtMs: number;
}>;

/** The rest of an attempt after its process died. */
type Attempted = Pick<ClaimedDelivery, 'deliveryId' | 'webhookId' | 'token' | 'n' | 'number'>;
type Finish = (result: Omit<AttemptResult, 'claim'> & Readonly<{ claim: Attempted }>) => RecordResult;

/** `stale`: another has the lease by now, so nothing was written. `unwritable`: the lease will expire instead. */
export type RecordResult = 'recorded' | 'stale' | 'unwritable';

/** Records results, in the caller's transaction. A result without the lease's token changes nothing. */
function createFinish(store: Store): Finish {
  type LeasedRow = DeliveryProgress & Readonly<{ stoppedAs: StoppedState | null }>;
  const leased = store.prepare<LeasedRow, [string, string]>(`
    SELECT ${PROGRESS},
      CASE WHEN w.deleted_at_ms IS NOT NULL THEN 'cancelled' WHEN w.paused_at_ms IS NOT NULL THEN 'skipped' END AS stoppedAs
    FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.id = ? AND d.lease_token = ?`);
  const close = store.prepare(`
    UPDATE attempts SET state = $state, ended_at_ms = $endedAtMs, status = $status, error = $error, detail = $detail,
      remote_address = $remoteAddress, phases_json = $phases, request_headers_json = $requestHeaders,
      answer_headers_json = $answerHeaders, answer_body = $answerBody, answer_body_kind = $answerBodyKind
    WHERE delivery_id = $deliveryId AND n = $n`);
  const write = store.prepare(`
    UPDATE deliveries SET ${SET_PROGRESS}, lease_token = NULL, lease_until_ms = NULL,
      last_status = iif($says, $status, last_status), last_error = iif($says, $error, last_error)
    WHERE id = $deliveryId`);
  const noteSuccess = store.prepare(`
    UPDATE webhooks SET failing_since_ms = NULL, consecutive_failures = 0, last_success_at_ms = ?1 WHERE id = ?2`);
  const noteFailure = store.prepare(`
    UPDATE webhooks SET failing_since_ms = coalesce(failing_since_ms, ?1),
      consecutive_failures = consecutive_failures + 1 WHERE id = ?2`);

  return function finish({ claim, verdict, sent, headers, endedAtMs }) {
    const row = leased.get(claim.deliveryId, claim.token);
    if (!row) return 'stale';
    const kind = claim.number === undefined ? 'ended-by-hand' : 'ended';
    const progress = nextDelivery(row, { kind, verdict, stoppedAs: row.stoppedAs, atMs: endedAtMs });
    const error = 'error' in verdict ? verdict.error : null;
    const { deliveryId, n } = claim;
    const requestHeaders = headers === undefined ? null : JSON.stringify(headers);
    const answer = answerOf(sent);
    close.run({ deliveryId, n, state: verdict.kind, endedAtMs, error, requestHeaders, ...answer });
    const says = Number(verdict.kind !== 'interrupted');
    write.run({ ...progress, deliveryId, says, status: answer.status, error });
    // Manual attempts do not count towards the state of the webhook.
    if (claim.number === undefined || verdict.kind === 'interrupted') return 'recorded';
    (verdict.kind === 'succeeded' ? noteSuccess : noteFailure).run(endedAtMs, claim.webhookId);
    return 'recorded';
  };
}

function answerOf(sent: Sent | undefined) {
  const answered = sent?.kind === 'answered' ? sent : undefined;
  return {
    status: answered?.status ?? null,
    detail: sent?.kind === 'failed' ? sent.detail : null,
    remoteAddress: answered?.remoteAddress ?? null,
    phases: sent === undefined ? null : JSON.stringify(sent.phases),
    answerHeaders: answered === undefined ? null : JSON.stringify(answered.fields),
    answerBody: answered?.body ?? null,
    answerBodyKind: answered?.bodyKind ?? null,
  };
}

/** In a transaction: ends attempts as `interrupted` whose lease expired with their process; never those of this one, `mine`. */
function createReap(store: Store, finish: Finish) {
  const expired = store.prepare<Omit<Attempted, 'number'> & { number: number | null }, [number]>(`
    SELECT d.id AS deliveryId, d.webhook_id AS webhookId, d.lease_token AS token, a.n, a.number
    FROM deliveries d JOIN attempts a ON a.delivery_id = d.id AND a.state = 'started'
    WHERE d.lease_token IS NOT NULL AND d.lease_until_ms <= ?`);
  const capWaits = store.prepare(`
    UPDATE deliveries SET next_attempt_at_ms = min(next_attempt_at_ms, ?1), resend_at_ms = min(resend_at_ms, ?1)
    WHERE due_at_ms > ?1`);
  const capLeases = store.prepare(`
    UPDATE deliveries SET lease_until_ms = ?1 WHERE lease_token IS NOT NULL AND lease_until_ms > ?1`);

  return function reap(nowMs: number, mine: ReadonlySet<string>): number {
    // Longer waits were written while the clock was ahead.
    capWaits.run(nowMs + WAIT_MS_MAX);
    capLeases.run(nowMs + LEASE_MS);
    let reaped = 0;
    const interrupted = { verdict: { kind: 'interrupted' }, sent: undefined, headers: undefined } as const;
    for (const { number, ...claim } of expired.all(nowMs)) {
      if (mine.has(claim.deliveryId)) continue;
      finish({ claim: { ...claim, number: number ?? undefined }, ...interrupted, endedAtMs: nowMs });
      reaped++;
    }
    return reaped;
  };
}
