import { unreachable } from '../../shared/brand.ts';
import { type Bucket, refill } from '../limits/bucket.ts';
import { RATE_LIFE_MS } from './authority-rate.ts';

/** Who decides on the rate of one account in this process: the authority, or this process by a bucket of its own. */
export type RateContact =
  /** The authority, which has not replied yet. */
  | Readonly<{ kind: 'new'; bucket: undefined }>
  /** The authority, which has replied without a miss since `repliesSinceMs`; `bucket` is of an earlier outage. */
  | Readonly<{ kind: 'heard'; repliesSinceMs: number; bucket: Bucket | undefined }>
  /** This process: a message had no reply, or the first reply is late. */
  | (Readonly<{ kind: 'alone' }> & Own)
  /** This process: there are replies, but one was too late for a request, or some nodes have not reported since the outage. */
  | (Readonly<{ kind: 'recovering'; repliesSinceMs: number }> & Own);

/** The own bucket, since when calls are let in from it, and how many of them are not reported. The last two are mutable: each call changes them. */
type Own = { readonly sinceMs: number; readonly bucket: Bucket; spent: number };

export type ContactEvent =
  /** A message that was sent at `sinceMs` had no reply, or a request can wait for none (`overdue`, at `sinceMs`). */
  | Readonly<{
      kind: 'missed' | 'overdue';
      sinceMs: number;
      nowMs: number;
      /** The refill of the own bucket, and whether there ever was a reply, so that something may have been granted. */
      rate: Readonly<Pick<Bucket, 'perMs' | 'burst'>>;
      isKnown: boolean;
    }>
  /** `lastMs`: when the reply before came. `areAll`: as many nodes as before have reported. `reported`: calls of `spent` that its message had. */
  | Readonly<{ kind: 'replied'; nowMs: number; lastMs: number; areAll: boolean; reported: number }>;

/** The own bucket of an account in use starts with what this long refills: its lease may just have been spent. */
const START_MS = 100;
/** How long after the first reply that follows an outage every live node has reported. */
const ALL_HEARD_MS = 2_000;

/**
 * The shares of all nodes sum to about one, and a process stays by its own until all of them have reported again: else the
 * authority would grant the first of them the shares that the others still spend.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> new
 *   new --> heard: replied
 *   new --> alone: missed, or overdue
 *   heard --> alone: missed
 *   heard --> recovering: overdue
 *   alone --> heard: replied, and all nodes are back
 *   alone --> recovering: replied, and some nodes are missing
 *   recovering --> heard: replied, and all nodes are back
 *   recovering --> alone: missed
 * ```
 *
 * All nodes are back when as many as before have reported, when there have been replies for two seconds, or when this
 * process was by its own for no longer than a lease lives. Where no arrow is, the state stays.
 */
export function nextContact(contact: RateContact, event: ContactEvent): RateContact {
  switch (event.kind) {
    case 'missed':
      return { kind: 'alone', ...ownIn(contact, event) };
    case 'overdue': {
      if (isByOwnBucket(contact)) return contact;
      const own = ownIn(contact, event);
      return contact.kind === 'new'
        ? { kind: 'alone', ...own }
        : { kind: 'recovering', repliesSinceMs: contact.repliesSinceMs, ...own };
    }
    case 'replied': {
      const { nowMs, lastMs, areAll, reported } = event;
      const isFirst = contact.kind === 'new' || contact.kind === 'alone' || nowMs - lastMs > ALL_HEARD_MS;
      const repliesSinceMs = isFirst ? nowMs : contact.repliesSinceMs;
      const heard = { kind: 'heard', repliesSinceMs, bucket: contact.bucket } as const;
      if (!isByOwnBucket(contact) || areAll || isLongHeard(heard, nowMs)) return heard;
      const { sinceMs, bucket, spent } = contact;
      if (nowMs - sinceMs <= RATE_LIFE_MS) return heard;
      return { kind: 'recovering', repliesSinceMs, sinceMs, bucket, spent: spent - reported };
    }
    default:
      return unreachable(event);
  }
}

export function isByOwnBucket(contact: RateContact): contact is RateContact & Own {
  return contact.kind === 'alone' || contact.kind === 'recovering';
}

/** The authority has replied for so long that every live node has reported to it. */
export function isLongHeard(contact: RateContact, nowMs: number): boolean {
  return 'repliesSinceMs' in contact && nowMs - contact.repliesSinceMs >= ALL_HEARD_MS;
}

/** An earlier bucket goes on: a store that comes and goes must not refill it. */
function ownIn(
  contact: RateContact,
  { sinceMs, nowMs, rate, isKnown }: Extract<ContactEvent, { rate: unknown }>,
): Own {
  if (isByOwnBucket(contact)) {
    const { sinceMs: earlierMs, bucket, spent } = contact;
    return { sinceMs: earlierMs, bucket, spent };
  }
  const bucket = { micro: Infinity, atMs: nowMs, ...contact.bucket, ...rate };
  refill(bucket, nowMs);
  if (isKnown) bucket.micro = Math.min(bucket.micro, rate.perMs * START_MS);
  return { sinceMs, bucket, spent: 0 };
}
