import { webhookRecord } from '../deploys/api/webhook-answers.ts';
import type { Edited, Removed, Rotated, Settled, Toggled } from '../deploys/webhooks/change.ts';
import { type Created, WEBHOOKS_MAX } from '../deploys/webhooks/create.ts';
import {
  type AllResent,
  ATTEMPTS_EVER_MAX,
  type Resent,
  type Tested,
} from '../deploys/webhooks/send-again.ts';
import type { Webhook } from '../deploys/webhooks/webhook.ts';
import { unreachable } from '../shared/brand.ts';
import { failed, type Outcome } from './command.ts';

type Result = Created | Edited | Toggled | Removed | Rotated | Settled | Tested | AllResent | Resent;

/** What a change of a webhook came to. `subject` is the id that the command named. */
export function webhookOutcome(result: Result, subject: string): Outcome {
  switch (result.kind) {
    case 'created':
    case 'rotated':
      return shownOnce(result.webhook, result.secret.reveal());
    case 'edited':
    case 'paused':
    case 'resumed':
    case 'settled':
      return done(lineOf(result.webhook), webhookRecord(result.webhook));
    case 'removed':
      return done(`Webhook ${subject} is deleted.`, { id: subject, deleted: true });
    case 'queued':
      return done(`The test is queued as delivery ${result.deliveryId}.`, { delivery_id: result.deliveryId });
    case 'due':
      return 'deliveries' in result
        ? done(`${result.deliveries} deliveries are sent again.`, { deliveries: result.deliveries })
        : done(`Delivery ${subject} is sent again.`, { deliveries: 1 });
    default:
      return failed(refusalOf(result, subject));
  }
}

type Refused = Exclude<
  Result,
  Readonly<{
    kind: 'created' | 'rotated' | 'edited' | 'paused' | 'resumed' | 'settled' | 'removed' | 'queued' | 'due';
  }>
>;

function refusalOf(refused: Refused, subject: string): string {
  switch (refused.kind) {
    case 'unfit':
    case 'unresolved':
      return `${refused.text}.`;
    case 'too-many':
      return `The account has ${WEBHOOKS_MAX} webhooks, which is the most.`;
    case 'made-before':
      return `Webhook ${refused.webhookId} was made before.`;
    case 'no-webhook':
      return `The account has no webhook with the id "${subject}"; webhook list shows them.`;
    case 'no-delivery':
      return `The account has no delivery with the id "${subject}"; webhook deliveries shows them.`;
    case 'webhook-paused':
      return 'The webhook is paused; webhook resume makes it active.';
    case 'rotation-pending':
      return 'A new secret waits already; use webhook switch-secret or webhook cancel-rotation first.';
    case 'no-rotation':
      return 'No new secret waits.';
    case 'changed-meanwhile':
      return 'The webhook was changed meanwhile; try again.';
    case 'over-rate':
      return `Too many tests; try again in ${refused.retryAfterSeconds} seconds.`;
    case 'already-due':
    case 'not-yet':
      return `Delivery ${subject} is about to be attempted anyway.`;
    case 'worn-out':
      return `Delivery ${subject} was attempted ${ATTEMPTS_EVER_MAX} times, which is the most.`;
    default:
      return unreachable(refused);
  }
}

/** A webhook in a line; only its host, because the rest of a URL may hold a secret. */
function lineOf({ id, url, pausedAtMs }: Webhook): string {
  return `Webhook ${id} to ${new URL(url).host} is ${pausedAtMs === null ? 'active' : 'paused'}.`;
}

function shownOnce(webhook: Webhook, secret: string): Outcome {
  const object = { webhook: webhookRecord(webhook), secret };
  return done(`${lineOf(webhook)} Its secret is not shown again:\n${secret}`, object);
}

function done(text: string, object: object): Outcome {
  return { kind: 'done', objects: [object], text: `${text}\n` };
}
