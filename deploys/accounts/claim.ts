import type { Clock } from '../../shared/clock.ts';
import type { Changes } from './changes.ts';
import type { OwnershipEvent } from './ownership.ts';
import type { Claim, Claiming, RedisHead } from './redis-head.ts';

export type Claimed = Extract<Claim, { kind: 'claimed' }>;

/**
 * Claims the right to publish for this start. It is claimed over the very holder that was seen before, and the database has its
 * generation and holder before Redis does: so of two starts that claim at once one gets it, and the other is behind.
 */
export function createClaim(changes: Changes, head: RedisHead, clock: Clock) {
  let over: string | undefined;

  function claimAs(how: Claiming['how']): Promise<Claim> {
    const { announced, turns, generation } = changes.last();
    return head.claim({ how, announced, turns, generation, over: over ?? '' });
  }

  type Unclaimed = Exclude<OwnershipEvent, { kind: 'away' | 'claimed' | 'take-over' }>;

  function refusalOf(found: Exclude<Claim, Claimed>): Unclaimed | undefined {
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
      if (as !== undefined && as <= found.generation && found.holder !== head.holder)
        return { kind: 'later', own, published: found.generation };
      changes.addPublisher(head.holder, clock.now(), as ?? Math.max(own, found.generation) + 1);
      over = found.holder;
    }
    const claimed = await claimAs(as === undefined ? 'claim' : 'take-over');
    if (claimed.kind === 'claimed') return claimed;
    over = undefined; // to be looked at again
    return refusalOf(claimed) ?? { kind: 'held' };
  };
}
