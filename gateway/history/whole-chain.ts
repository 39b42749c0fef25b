import { areSkipped, holesIn, partsOf } from './block-parts.ts';
import { knownHoldings, toldHoldings } from './holding.ts';
import type { Passage } from './passage.ts';

/**
 * Whether the backends together have every slot from the lowest one that any has. Only then does it say something about
 * a cursor that none of them knows it: otherwise it may stand in slots that none of them has.
 */
export async function haveWholeChain(passage: Passage): Promise<boolean> {
  const { live, archive } = passage.tiers;
  const count = live.length + archive.length;
  const known = knownHoldings(passage.tiers);
  const holdings = known.length === count ? known : await toldHoldings(passage, Infinity);
  if (holdings.length < count) return false;
  const start = Math.min(...holdings.map(({ floor }) => floor));
  const floors = holdings.flatMap(({ tier, floor }) => (tier === 'live' ? floor : []));
  const end = Math.max(...(floors.length > 0 ? floors : holdings.map(({ top }) => top)));
  const parts = partsOf(holdings, start, end);
  return parts.at(-1)?.to === end && areSkipped(passage, holesIn(parts, start));
}
