import { unreachable } from '../../../../shared/brand.ts';
import { ATTEMPTS_EVER_MAX, type Resent } from '../../../outbox/resend.ts';
import { WEBHOOKS_MAX } from '../../../webhooks/create.ts';
import type { Rotated } from '../../../webhooks/rotate.ts';
import type { Tested } from '../../../webhooks/send-again.ts';

/** What the services refuse on a page, beside what is not there. */
export type PageRefusal =
  | Exclude<Resent, { kind: 'due' | 'no-delivery' }>
  | Exclude<Rotated, { kind: 'rotated' | 'no-webhook' }>
  | Extract<Tested, { kind: 'over-rate' }>
  | Readonly<{ kind: 'no-rotation' | 'too-many' }>;

/** Why nothing was done, in a sentence. */
export function refusalText(refusal: PageRefusal): string {
  switch (refusal.kind) {
    case 'webhook-paused':
      return 'The webhook is paused. Resume it first.';
    case 'webhook-deleted':
      return 'The webhook was deleted.';
    case 'already-due':
      return 'It is queued to be sent again already.';
    case 'not-yet':
      return 'It is about to be attempted anyway.';
    case 'worn-out':
      return `It was attempted ${ATTEMPTS_EVER_MAX} times, which is the most.`;
    case 'rotation-pending':
      return 'A new secret waits already. Let it take over or cancel it first.';
    case 'no-rotation':
      return 'No new secret waits. It may have taken over meanwhile.';
    case 'changed-meanwhile':
      return 'The webhook was changed since this form was opened. Nothing was done; look at it and try again.';
    case 'over-rate':
      return `Too many requests. Try again in ${refusal.retryAfterSeconds} seconds.`;
    case 'too-many':
      return `The account has ${WEBHOOKS_MAX} webhooks, which is the most.`;
    default:
      return unreachable(refusal);
  }
}

/** HTTP status of a refusal. */
export function refusalStatus({ kind }: PageRefusal): number {
  return kind === 'over-rate' ? 429 : 409;
}
