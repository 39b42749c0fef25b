import { unreachable } from '../../../shared/brand.ts';
import { ATTEMPTS_EVER_MAX, type Resent } from '../../outbox/resend.ts';
import { DELETED_MAX, WEBHOOKS_MAX } from '../../webhooks/create.ts';
import type { CreatedOnce } from '../../webhooks/create-once.ts';
import type { Edited } from '../../webhooks/edit.ts';
import type { Toggled } from '../../webhooks/pause.ts';
import type { Removed } from '../../webhooks/remove.ts';
import type { Rotated, Settled } from '../../webhooks/rotate.ts';
import type { AllResent, Tested } from '../../webhooks/send-again.ts';
import { refusalResponse } from '../refusal.ts';
import { webhookRecord } from './wire.ts';

export type Outcome =
  | CreatedOnce
  | Edited
  | Toggled
  | Removed
  | Rotated
  | Settled
  | Tested
  | AllResent
  | Exclude<Resent, { kind: 'due' }>;

const PAUSED = 'The webhook is paused';

/** What became of a request, as its caller reads it. */
export function outcomeResponse(outcome: Outcome): Response {
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
      return jsonResponse({ deliveries: outcome.deliveries }, 202);
    case 'already-due':
      return jsonResponse({ deliveries: 1 }, 202);
    case 'too-many':
      return conflict(
        `The account has ${WEBHOOKS_MAX} webhooks, or has deleted ${DELETED_MAX} since yesterday, which is the most`,
      );
    case 'made-before':
      return conflict('The webhook was made before');
    case 'key-reused':
      return refusalResponse({ kind: 'unfit', text: 'The Idempotency-Key was used with another body' });
    case 'key-under-way':
      return conflict('Another request with this Idempotency-Key is under way');
    case 'changed-meanwhile':
      return conflict('The webhook was changed meanwhile');
    case 'rotation-pending':
      return conflict('A rotated secret is waiting: let it take over or cancel it first');
    case 'no-rotation':
      return conflict('No rotated secret is waiting');
    case 'webhook-paused':
      return conflict(PAUSED);
    case 'not-yet':
      return conflict(`The delivery is ${outcome.state}: it is about to be attempted anyway`);
    case 'worn-out':
      return conflict(`The delivery was attempted ${ATTEMPTS_EVER_MAX} times, which is the most`);
    case 'over-rate':
    case 'unfit':
    case 'unresolved':
      return refusalResponse(outcome);
    case 'no-webhook':
    case 'no-delivery':
    case 'webhook-deleted':
      return refusalResponse({ kind: 'not-found' });
    default:
      return unreachable(outcome);
  }
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
