import { unreachable } from '../../shared/brand.ts';
import { type Bucket, refill } from '../limits/bucket.ts';
import { RATE_LIFE_MS } from './authority-rate.ts';

/**
 * Who decides on the rate of one account in this process: the authority, or this process by a bucket of its own. Shares
 * of all nodes sum to about one, and it stays by its own until all of them have reported again: else the authority would grant
 * the first of them the shares that the others still spend.
 *
 *     heard      -- missed -->                              alone
 *     heard      -- overdue -->                             recovering (alone before the first reply)
 *     alone      -- replied, all nodes are back -->         heard
 *     alone      -- replied, some nodes are missing -->     recovering
 *     recovering -- missed -->                              alone
 *     recovering -- replied, all nodes are back -->         heard
 *
 * All nodes are back when as many as before have reported, when there have been replies for two seconds, or when this
 * process was by its own for no longer than a lease lives. Where no arrow is, the state stays.
 */
export type RateContact =
  /** `repliesSinceMs`: since when the authority has replied without a miss; none before the first reply. */
  | Readonly<{ kind: 'heard'; repliesSinceMs: number | undefined; bucket: Bucket | undefined }>
  /** A message had no reply. */
  | (Readonly<{ kind: 'alone' }> & Own)
  /** There are replies, but they came too late, or some nodes have not reported yet. */
  | (Readonly<{ kind: 'recovering'; repliesSinceMs: number }> & Own);

/** The own bucket, since when calls are let in from it, and how many of them are not reported. The last two are mutable. */
type Own = { readonly sinceMs: number; readonly bucket: Bucket; spent: number };

/** What the own bucket is refilled at, and whether a reply has told what this process had spent before. */
type Start = Readonly<{ nowMs: number; rate: Readonly<Pick<Bucket, 'perMs' | 'burst'>>; isKnown: boolean }>;

export type ContactEvent =
  /** A message had no reply. */
  | (Readonly<{ kind: 'missed'; sentMs: number }> & Start)
  /** A request cannot wait for the authority. */
  | (Readonly<{ kind: 'overdue' }> & Start)
  /** `heardMs`: when the reply before came. `areAll`: as many nodes as before have reported. */
  | Readonly<{ kind: 'replied'; nowMs: number; heardMs: number; areAll: boolean }>;

/** The own bucket of an account in use starts with what this long refills: its lease may just have been spent. */
const START_MS = 100;
/** How long after the first reply that follows an outage every live node has reported. */
const HEARD_MS = 2_000;

export function nextContact(contact: RateContact, event: ContactEvent): RateContact {
  switch (event.kind) {
    case 'missed':
      return {
        kind: 'alone',
        ...(contact.kind === 'heard' ? start(contact, event.sentMs, event) : ownOf(contact)),
      };
    case 'overdue': {
      if (contact.kind !== 'heard') return contact;
      const own = start(contact, event.nowMs, event);
      const { repliesSinceMs } = contact;
      return repliesSinceMs === undefined
        ? { kind: 'alone', ...own }
        : { kind: 'recovering', repliesSinceMs, ...own };
    }
    case 'replied': {
      const { nowMs, heardMs, areAll } = event;
      const knownMs = contact.kind === 'alone' ? undefined : contact.repliesSinceMs;
      const repliesSinceMs = knownMs === undefined || nowMs - heardMs > HEARD_MS ? nowMs : knownMs;
      const { bucket } = contact;
      const heard = { kind: 'heard', repliesSinceMs, bucket } as const;
      const isBack = areAll || isLongHeard(heard, nowMs);
      if (contact.kind === 'heard' || isBack || nowMs - contact.sinceMs <= RATE_LIFE_MS) return heard;
      return { kind: 'recovering', repliesSinceMs, ...ownOf(contact) };
    }
    default:
      return unreachable(event);
  }
}

/** The authority has replied for so long that every live node has reported to it. */
export function isLongHeard(contact: RateContact, nowMs: number): boolean {
  const sinceMs = contact.kind === 'alone' ? undefined : contact.repliesSinceMs;
  return sinceMs !== undefined && nowMs - sinceMs >= HEARD_MS;
}

/** An earlier bucket goes on: a store that comes and goes must not refill it. */
function start(
  { bucket: earlier }: Pick<RateContact, 'bucket'>,
  sinceMs: number,
  { nowMs, rate, isKnown }: Start,
): Own {
  const bucket = { micro: Infinity, atMs: nowMs, ...earlier, ...rate };
  refill(bucket, nowMs);
  if (isKnown) bucket.micro = Math.min(bucket.micro, rate.perMs * START_MS);
  return { sinceMs, bucket, spent: 0 };
}

function ownOf({ sinceMs, bucket, spent }: Own): Own {
  return { sinceMs, bucket, spent };
}
