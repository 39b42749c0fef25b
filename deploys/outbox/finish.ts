import type { Store } from '../../shared/store/open.ts';
import type { Sent } from '../delivery/send.ts';
import type { Verdict } from '../delivery/verdict.ts';
import { afterAttempt, type DeliveryState } from './after-attempt.ts';
import type { Claim } from './claim.ts';

/** How a claimed attempt ended. `headers` are those of the event as they were sent; `sent` is absent when nothing was. */
export type Result = Readonly<{
  claim: Claim;
  verdict: Verdict;
  sent: Sent | undefined;
  headers: Readonly<Record<string, string>> | undefined;
  endedAtMs: number;
}>;

/** What is known of a result when its process died. */
export type Finish = (
  result: Omit<Result, 'claim'> &
    Readonly<{ claim: Pick<Claim, 'deliveryId' | 'webhookId' | 'token' | 'n' | 'number'> }>,
) => Recorded;

/** `stale`: the lease is another's by now, so nothing was written. `unwritable`: the lease runs out instead. */
export type Recorded = 'recorded' | 'stale' | 'unwritable';

type HeldRow = {
  state: DeliveryState;
  next_attempt_at_ms: number | null;
  finished_at_ms: number | null;
  is_deleted: number;
  is_paused: number;
};

/** Records how attempts ended, in the one transaction it is called in. A result without the lease's token changes nothing. */
export function createFinish(store: Store): Finish {
  const held = store.prepare<HeldRow, [string, string]>(`
    SELECT d.state, d.next_attempt_at_ms, d.finished_at_ms, w.deleted_at_ms IS NOT NULL AS is_deleted,
      w.paused_at_ms IS NOT NULL AS is_paused
    FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.id = ? AND d.lease_token = ?`);
  const close = store.prepare(`
    UPDATE attempts SET state = $state, ended_at_ms = $endedAtMs, status = $status, error = $error, detail = $detail,
      remote_address = $remoteAddress, phases_json = $phases, request_headers_json = $requestHeaders,
      answer_headers_json = $answerHeaders, answer_body = $answerBody, answer_body_kind = $answerBodyKind
    WHERE delivery_id = $deliveryId AND n = $n`);
  const place = store.prepare(`
    UPDATE deliveries SET state = $state, next_attempt_at_ms = $nextAttemptAtMs, finished_at_ms = $finishedAtMs,
      attempts = coalesce($attempts, attempts), resend_at_ms = coalesce($resendAtMs, resend_at_ms),
      lease_token = NULL, lease_until_ms = NULL,
      last_status = iif($says, $status, last_status), last_error = iif($says, $error, last_error)
    WHERE id = $deliveryId`);
  const noteSuccess = store.prepare(`
    UPDATE webhooks SET failing_since_ms = NULL, consecutive_failures = 0, last_success_at_ms = ?1 WHERE id = ?2`);
  const noteFailure = store.prepare(`
    UPDATE webhooks SET failing_since_ms = coalesce(failing_since_ms, ?1),
      consecutive_failures = consecutive_failures + 1 WHERE id = ?2`);

  return function finish({ claim, verdict, sent, headers, endedAtMs }) {
    const row = held.get(claim.deliveryId, claim.token);
    if (!row) return 'stale';
    const next = afterAttempt(endedFrom(row, claim.number), verdict, endedAtMs);
    const error = 'error' in verdict ? verdict.error : null;
    const { deliveryId, n } = claim;
    const requestHeaders = headers === undefined ? null : JSON.stringify(headers);
    close.run({ deliveryId, n, state: verdict.kind, endedAtMs, error, requestHeaders, ...answerOf(sent) });
    place.run({
      deliveryId,
      state: next.state,
      nextAttemptAtMs: next.nextAttemptAtMs ?? null,
      finishedAtMs: next.finishedAtMs ?? null,
      attempts: next.attempts ?? null,
      resendAtMs: next.isResent === true ? endedAtMs : null,
      says: Number(verdict.kind !== 'interrupted'),
      status: sent?.kind === 'answered' ? sent.status : null,
      error,
    });
    // What was asked for by hand says nothing about how the webhook fares by itself.
    if (claim.number === undefined || verdict.kind === 'interrupted') return 'recorded';
    (verdict.kind === 'succeeded' ? noteSuccess : noteFailure).run(endedAtMs, claim.webhookId);
    return 'recorded';
  };
}

function endedFrom(row: HeldRow, number: number | undefined) {
  return {
    state: row.state,
    number,
    nextAttemptAtMs: row.next_attempt_at_ms ?? undefined,
    finishedAtMs: row.finished_at_ms ?? undefined,
    isDeleted: row.is_deleted === 1,
    isPaused: row.is_paused === 1,
  };
}

function answerOf(sent: Sent | undefined) {
  const answered = sent?.kind === 'answered' ? sent : undefined;
  return {
    status: answered?.status ?? null,
    detail: sent === undefined || sent.kind === 'answered' ? null : sent.detail,
    remoteAddress: answered?.remoteAddress ?? null,
    phases: sent === undefined ? null : JSON.stringify(sent.phases),
    answerHeaders: answered === undefined ? null : JSON.stringify(answered.fields),
    answerBody: answered?.body ?? null,
    answerBodyKind: answered?.bodyKind ?? null,
  };
}
