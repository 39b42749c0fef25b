import { unreachable } from '../../shared/brand.ts';

/**
 * Whether this database is the one that counts. Several copies of one can exist: that of the old host after a move, a backup
 * that was put back. What is published in Redis says which is the latest: it names the start of deploys that published last
 * (its holder, of which `publishers` of the database knows all of its own), and has a generation and revisions that only grow.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> unknown
 *   state "not known to count, or not now" as open {
 *     unknown --> unpublished: Redis is away, and never had it
 *     unknown --> waiting: an earlier start has the lease
 *     unpublished --> waiting: the same
 *     cutOff --> waiting: the same
 *     waiting --> unknown: Redis is away
 *     waiting --> unpublished: Redis is away, and never had it
 *     unknown --> unreadable: Redis has a figure that deploys did not write
 *     unpublished --> unreadable: the same
 *     waiting --> unreadable: the same
 *     cutOff --> unreadable: the same
 *     unreadable --> unknown: Redis is away
 *     unreadable --> unpublished: Redis is away, and never had it
 *     unreadable --> waiting: an earlier start has the lease
 *   }
 *   open --> sole: claimed
 *   open --> behind: published is later
 *   open --> otherOrigin: Redis has the accounts of another database
 *   open --> takingOver: an operator says that this one is true
 *   behind --> takingOver: the same
 *   takingOver --> sole: claimed
 *   takingOver --> behind: a copy with the same word took over before
 *   takingOver --> otherOrigin: as above
 *   takingOver --> unreadable: as above
 *   sole --> cutOff: Redis is away
 *   sole --> waiting: as above
 *   sole --> behind: another start has published
 *   sole --> otherOrigin: as above
 *   sole --> unreadable: as above
 *   otherOrigin --> sole: claimed
 *   otherOrigin --> waiting: as above
 *   otherOrigin --> behind: published is later
 *   otherOrigin --> unreadable: as above
 * ```
 *
 * `behind` is left only by an operator, also when Redis has lost everything since: that something later existed is known. A
 * start that cannot reach Redis does not know whether it is a copy. It waits, because a delivery that is late can still be
 * sent, and one that was sent twice, or a change to the wrong copy, cannot be taken back.
 */
export type Ownership =
  /** Redis has not answered this start yet. */
  | { readonly kind: 'unknown' }
  /** Redis does not answer, and this database was never in one: nothing later than it can be known there. */
  | { readonly kind: 'unpublished' }
  /** An earlier start that this database knows of has the lease: it ended a moment ago, or this is a copy of a running one. */
  | { readonly kind: 'waiting' }
  /** This start publishes. `isWhole`: all accounts and keys are in Redis; until then one that is not found may still come. */
  | { readonly kind: 'sole'; readonly isWhole: boolean }
  /** This start published until Redis went away. */
  | { readonly kind: 'cut-off' }
  /** The publication is later than this database. `isLate`: it is so since an operator said that this one is true. */
  | Readonly<{ kind: 'behind'; own: number; published: number; isLate?: boolean }>
  /** An operator has said that this database is the true one, and Redis does not know yet. */
  | { readonly kind: 'taking-over' }
  /** Redis has the accounts of another database. */
  | { readonly kind: 'other-origin'; readonly origin: string }
  /** The publication has a figure that no deploys wrote: whether it is later cannot be told. */
  | { readonly kind: 'unreadable'; readonly figure: string };

/** The news of one look at Redis, or of an operator. `own` and `published` are generations. */
export type OwnershipEvent =
  | { readonly kind: 'away'; readonly wasPublished: boolean }
  | { readonly kind: 'held' }
  | { readonly kind: 'claimed'; readonly isWhole: boolean }
  | { readonly kind: 'later'; readonly own: number; readonly published: number }
  | { readonly kind: 'other-origin'; readonly origin: string }
  | { readonly kind: 'unreadable'; readonly figure: string }
  | { readonly kind: 'take-over' };

/** The state after an event. Pure. */
export function nextOwnership(state: Ownership, event: OwnershipEvent): Ownership {
  if (state.kind === 'behind') return event.kind === 'take-over' ? { kind: 'taking-over' } : state;
  switch (event.kind) {
    case 'claimed':
      return { kind: 'sole', isWhole: event.isWhole };
    case 'other-origin':
    case 'unreadable':
      return event;
    case 'take-over':
      // Two installations that share a Redis by mistake must not take each other's place.
      return state.kind === 'other-origin' || state.kind === 'sole' ? state : { kind: 'taking-over' };
    case 'later':
      return { ...event, kind: 'behind', isLate: state.kind === 'taking-over' };
    case 'held':
      return state.kind === 'taking-over' ? state : { kind: 'waiting' };
    case 'away':
      return afterSilence(state, event.wasPublished);
    default:
      return unreachable(event);
  }
}

function afterSilence(state: Exclude<Ownership, { kind: 'behind' }>, wasPublished: boolean): Ownership {
  switch (state.kind) {
    case 'sole':
    case 'cut-off':
      return { kind: 'cut-off' };
    case 'unknown':
    case 'waiting':
    case 'unreadable':
      return wasPublished ? { kind: 'unknown' } : { kind: 'unpublished' };
    default:
      return state;
  }
}

/**
 * Whether deliveries may go out. `fenced`: each turn first has Redis confirm that this start still holds the lease, which no
 * other can take meanwhile.
 */
export function deliveriesOf({ kind }: Ownership): 'fenced' | 'free' | 'none' {
  // Deliveries of an installation of its own are nobody else's.
  if (kind === 'other-origin') return 'free';
  return kind === 'sole' || kind === 'cut-off' ? 'fenced' : 'none';
}

const TAKE_OVER = 'bun run sluice deploys take-over';
const FROZEN = 'nothing is published, no webhook is sent, and changes are refused';

/** Why changes are refused, as a sentence; `undefined`: they are taken. */
export function whyReadOnly(state: Ownership): string | undefined {
  switch (state.kind) {
    case 'behind':
    case 'unreadable':
      return complaintOf(state);
    case 'taking-over':
      return 'This database is to take over, and Redis does not know yet. Nothing was changed. Try again in a moment.';
    case 'unknown':
    case 'waiting':
      return 'It is not known yet whether another copy of this database is in use. Nothing was changed. Try again in a moment.';
    default:
      return undefined;
  }
}

/** Tells an operator what to do; `undefined`: nothing. */
export function complaintOf(state: Ownership): string | undefined {
  switch (state.kind) {
    case 'behind':
      return `${whyBehind(state)} (generation ${state.own}, published is ${state.published}): ${FROZEN}. Stop this deploys and use the newer database; or, if this one is to count, run: ${TAKE_OVER}`;
    case 'waiting':
      return `Another deploys uses this database or a copy of it: here ${FROZEN}. Stop one of the two.`;
    case 'unknown':
      return `Redis does not answer, so it is not known whether a newer copy of this database is in use: until it does ${FROZEN}.`;
    case 'other-origin':
      return `Accounts and keys are not published: Redis has those of another database (origin ${state.origin}). Run deploys where that database is, or delete the Redis keys {sluice:accounts}* to publish this one.`;
    case 'unreadable':
      return `Redis has a figure that deploys did not write ({sluice:accounts}, ${state.figure}), so it is not known whether a newer copy of this database is in use: ${FROZEN}. If it is this one that counts, delete the Redis keys {sluice:accounts}:head and {sluice:accounts}:seen.`;
    case 'unpublished':
    case 'cut-off':
    case 'taking-over':
    case 'sole':
      return undefined;
    default:
      return unreachable(state);
  }
}

/** A copy that was started more often than the database that published last has a higher generation, and lacks its changes. */
function whyBehind({ own, published, isLate }: Extract<Ownership, { kind: 'behind' }>): string {
  if (isLate === true) return 'Another copy of this database was published before this one could take over';
  return own > published
    ? 'Another copy of this database has published since'
    : 'This database is older than what is published';
}
