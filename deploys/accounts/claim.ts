import type { Clock } from '../../shared/clock.ts';
import type { Changes } from './changes.ts';
import type { OwnershipEvent } from './ownership.ts';
import type { ClaimReply, Claiming, RedisHead } from './redis-head.ts';

export type Claimed = Extract<ClaimReply, { kind: 'claimed' }>;

/** A lease whose end moves by more is renewed: the clock of Redis has milliseconds. */
const RENEWED_MS = 100;
/** How long a copy of a running deploys waits when that has gone: a restart takes less. */
const COMES_BACK_MS = 60_000;

/**
 * Whether another start runs on a copy of this file. The lease of an earlier start on this very file, which has ended, is not
 * renewed; only one starts on a file at a time.
 */
function createRunning(clock: Clock) {
  let endsMs: number | undefined;
  let isOther = false;
  let goneMs: number | undefined;

  return {
    /** Another start has the lease up to this time. */
    noteLease(upToMs: number): void {
      isOther ||= endsMs !== undefined && Math.abs(upToMs - endsMs) > RENEWED_MS;
      [endsMs, goneMs] = [upToMs, undefined];
    },
    /** It had the lease a short time ago: to be asked while nobody has it. */
    mayComeBack(): boolean {
      if (!isOther) return false;
      goneMs ??= clock.monotonic();
      return clock.monotonic() - goneMs < COMES_BACK_MS;
    },
  };
}

/**
 * Claims the right to publish for this start. It is claimed over the very holder that was seen before, and the database has its
 * generation and holder before Redis does: so of two starts that claim at once one gets it, and the other is behind.
 */
export function createClaim(changes: Changes, head: RedisHead, clock: Clock) {
  const running = createRunning(clock);
  let over: string | undefined;

  async function claimAs(how: Claiming['how']): Promise<ClaimReply> {
    const { announced, turns, generation } = changes.last();
    const found = await head.claim({ how, announced, turns, generation, over: over ?? '' });
    if (found.kind === 'held') running.noteLease(found.endsMs);
    return found;
  }

  type Unclaimed = Exclude<OwnershipEvent, { kind: 'away' | 'claimed' | 'take-over' }>;

  function refusalOf(found: Exclude<ClaimReply, Claimed>): Unclaimed | undefined {
    if (found.kind === 'other-origin' || found.kind === 'unreadable') return found;
    const own = changes.last().generation;
    const { holder, generation: published } = found;
    const isKnown = holder === '' || holder === head.holder || changes.knows(holder);
    if (found.kind === 'later' || published > own || !isKnown) return { kind: 'later', own, published };
    return found.kind === 'held' ? { kind: 'held' } : undefined;
  }

  /** `as`: the generation to take over as. */
  return async function claim(as: number | undefined): Promise<Claimed | Unclaimed> {
    if (over === undefined || as !== undefined) {
      const found = await claimAs('look');
      // A look takes nothing.
      if (found.kind === 'claimed') throw new Error('Redis gave a claim that was not wanted');
      const refusal = refusalOf(found);
      if (found.kind === 'other-origin' || found.kind === 'unreadable') return found;
      const own = changes.last().generation;
      if (as === undefined && refusal !== undefined) return refusal;
      // By the same word an earlier start on this file may have taken over, and died before it noted that.
      const isOwn = found.holder === head.holder || (own >= found.generation && changes.knows(found.holder));
      if (as !== undefined && as <= found.generation && !isOwn)
        return { kind: 'later', own, published: found.generation };
      if (as === undefined && running.mayComeBack()) return { kind: 'held' };
      const isGiven = as !== undefined && (as > found.generation || found.holder === head.holder);
      changes.addPublisher(head.holder, clock.now(), isGiven ? as : Math.max(own, found.generation) + 1);
      over = found.holder;
    }
    const claimed = await claimAs(as === undefined ? 'claim' : 'take-over');
    if (claimed.kind === 'claimed') return claimed;
    over = undefined; // to be looked at again
    return refusalOf(claimed) ?? { kind: 'held' };
  };
}
