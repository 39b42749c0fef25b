import { unreachable } from '../../shared/brand.ts';
import type { AttemptRow, Delivery, DeliveryRow } from '../outbox/list.ts';
import { DELETED_MAX, WEBHOOKS_MAX } from '../webhooks/create.ts';
import { ATTEMPTS_EVER_MAX } from '../webhooks/send-again.ts';
import type { Webhook } from '../webhooks/webhook.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import { refusalResponse } from './refusal.ts';
import type { DeliveryRecord, WebhookRecord } from './schema.ts';

export type Outcome = Extract<
  Awaited<ReturnType<Webhooks[Exclude<keyof Webhooks, 'check'>]>>,
  Readonly<{ kind: string }>
>;

const CONFLICTS = {
  'too-many': `An account can have at most ${WEBHOOKS_MAX} webhooks and delete at most ${DELETED_MAX} in 24 hours`,
  'made-before': 'The webhook was already created',
  'key-under-way': 'Another request with this Idempotency-Key is in progress',
  'changed-meanwhile': 'The webhook was changed by another request',
  'rotation-pending': 'A rotation is pending: switch to the new secret or cancel the rotation first',
  'no-rotation': 'No rotation is pending',
  'webhook-paused': 'The webhook is paused',
  'worn-out': `The delivery has reached the maximum of ${ATTEMPTS_EVER_MAX} attempts`,
};

/** Tells the caller the outcome of a request. */
export function outcomeResponse(outcome: Outcome): Response {
  if (isConflict(outcome)) return conflict(CONFLICTS[outcome.kind]);
  switch (outcome.kind) {
    case 'created':
    case 'replayed':
    case 'rotated': {
      const { webhook, secret, kind } = outcome;
      const shown = { webhook: webhookRecord(webhook), secret: secret.reveal() };
      const response = jsonResponse(shown, kind === 'rotated' ? 200 : 201);
      if (kind === 'replayed') response.headers.set('idempotency-replayed', 'true');
      return response;
    }
    case 'edited':
    case 'paused':
    case 'resumed':
    case 'settled':
      return jsonResponse(webhookRecord(outcome.webhook));
    case 'removed':
      return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } });
    case 'queued':
      return jsonResponse({ delivery_id: outcome.deliveryId }, 202);
    case 'due':
    case 'already-due':
      return jsonResponse({ deliveries: 'deliveries' in outcome ? outcome.deliveries : 1 }, 202);
    case 'key-reused':
      return refusalResponse({ kind: 'unfit', text: 'The Idempotency-Key was used with another body' });
    case 'not-yet':
      return conflict(`The delivery is ${outcome.state}: it will be attempted soon without a resend`);
    case 'over-rate':
    case 'unfit':
    case 'unresolved':
      return refusalResponse(outcome);
    case 'no-webhook':
    case 'no-delivery':
      return refusalResponse({ kind: 'not-found' });
    default:
      return unreachable(outcome);
  }
}

function isConflict(outcome: Outcome): outcome is Extract<Outcome, { kind: keyof typeof CONFLICTS }> {
  return Object.hasOwn(CONFLICTS, outcome.kind);
}

/** Nothing of an account is kept by a cache, and what a receiver answered is no page to any browser. */
const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'",
};

export function jsonResponse(value: object, status = 200): Response {
  return Response.json(value, { status, headers: HEADERS });
}

function conflict(text: string): Response {
  return refusalResponse({ kind: 'conflict', text });
}

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
