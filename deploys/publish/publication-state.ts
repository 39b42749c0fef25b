import type { Health } from '../health.ts';

/** How far accounts and keys are published to Redis. */
export type PublicationState =
  /** All accounts and keys are in Redis, and changes go there. */
  | { readonly kind: 'publishing' }
  /** All accounts and keys are being written; until then a key that is not found may be one that is still to come. */
  | { readonly kind: 'building' }
  /** Redis does not answer. */
  | { readonly kind: 'away' }
  /** Redis has the accounts of another database. */
  | { readonly kind: 'other-origin'; readonly origin: string }
  /** Another deploys publishes this database or a copy of it. */
  | { readonly kind: 'held' };

/** What an operator must do; `undefined`: nothing. */
export function complaintOf(state: PublicationState): string | undefined {
  switch (state.kind) {
    case 'publishing':
    case 'building':
    case 'away':
      return undefined;
    case 'other-origin':
      return `Accounts and keys are not published: Redis has those of another database (origin ${state.origin}). Run deploys where that database is, or delete the Redis keys {sluice:accounts}* to publish this one.`;
    case 'held':
      return 'Accounts and keys are not published: another deploys publishes this database or a copy of it. Stop one of the two.';
  }
}

/** The same for /health. Redis being away is no reason to take deploys out of service: what is known goes on working. */
export function healthOfPublication(state: PublicationState): Health {
  const complaint = complaintOf(state);
  return complaint === undefined ? { isWell: true, sentence: 'ok' } : { isWell: false, sentence: complaint };
}
