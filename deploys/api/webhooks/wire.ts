import type { AttemptRow, DeliveryRow } from '../../outbox/list.ts';
import type { Delivery } from '../../webhooks/send-again.ts';
import type { Webhook } from '../../webhooks/webhook.ts';
import type { DeliveryRecord, WebhookRecord } from './schema.ts';

/** A webhook as its account reads it. */
export function webhookRecord(webhook: Webhook): WebhookRecord {
  return {
    id: webhook.id,
    url: webhook.url,
    programs: webhook.programs && [...webhook.programs],
    description: webhook.description,
    state: webhook.pausedAtMs === null ? 'active' : 'paused',
    created_at: iso(webhook.createdAtMs),
    updated_at: iso(webhook.updatedAtMs),
    failing_since: isoOrNull(webhook.failingSinceMs),
    consecutive_failures: webhook.consecutiveFailures,
    last_success_at: isoOrNull(webhook.lastSuccessAtMs),
    next_secret_at: isoOrNull(webhook.nextSecretAtMs),
  };
}

/** A delivery as it stands in a list. */
export function deliveryRecord(row: DeliveryRow): DeliveryRecord {
  return {
    id: row.id,
    event: row.eventKind,
    state: row.state,
    attempts: row.attempts,
    next_attempt_at: isoOrNull(row.nextAttemptAtMs),
    resend_at: isoOrNull(row.resendAtMs),
    last_status: row.lastStatus,
    last_error: row.lastError,
    created_at: iso(row.createdAtMs),
    finished_at: isoOrNull(row.finishedAtMs),
    program_id: row.programId,
    label: row.label,
    deploy_slot: row.deploySlot,
  };
}

/** A delivery with its body, as text, and every attempt. */
export function deliveryDetail({ body, tries, ...row }: Delivery) {
  return { ...deliveryRecord(row), body: textOrNull(body), tries: tries.map(attemptRecord) };
}

/** Without `detail`, which is for operators and may name addresses of their network. */
function attemptRecord(row: AttemptRow) {
  return {
    n: row.n,
    number: row.number,
    trigger: row.trigger,
    state: row.state,
    url: row.url,
    started_at: iso(row.startedAtMs),
    ended_at: isoOrNull(row.endedAtMs),
    status: row.status,
    error: row.error,
    remote_address: row.remoteAddress,
    phases: jsonOrNull(row.phasesJson),
    request_headers: jsonOrNull(row.requestHeadersJson),
    response_headers: jsonOrNull(row.answerHeadersJson),
    response_body: textOrNull(row.answerBody),
    response_body_kind: row.answerBodyKind,
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}

function textOrNull(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('utf8');
}

function jsonOrNull(json: string | null): unknown {
  return json === null ? null : JSON.parse(json);
}
