import type { Reply } from '../upstream/forward.ts';
import { storageUnreachable } from './answers.ts';
import { paramsForArchive } from './archive-params.ts';
import { chooseSaying } from './choose-saying.ts';
import type { Passage } from './passage.ts';
import { elementsOf, numberIn } from './slices.ts';
import { archivesWith, finalizedBy, floorsOf, mayHave } from './tiers.ts';
import { isOver, verdictOf } from './verdict.ts';

/** `getBlock` and `getBlockTime`: the tier that should have the slot first, then the other one (rpc.md 4.3). */
export async function forwardBlock(passage: Passage): Promise<Reply> {
  const { call, tiers, ask } = passage;
  const slot = numberIn(elementsOf(call.params ?? NOTHING)?.[0]);
  if (slot === undefined) return passage.through();
  const floors = floorsOf(tiers);
  const liveFirst = floors === undefined || slot >= floors.lowest;
  const askLive = () => ask(tiers.live);
  const askArchive = () => ask(archivesWith(tiers, slot), { params: paramsForArchive(call.params) });
  const first = await (liveFirst ? askLive() : askArchive());
  const said = verdictOf(first);
  // A skipped slot is common: no archive is asked that is known not to reach up to it.
  if (isOver(said) || (liveFirst && !mayHave(tiers, slot))) return first;
  const second = await (liveFirst ? askArchive() : askLive());
  const then = verdictOf(second);
  if (isOver(then)) return second;
  const [live, archive] = liveFirst ? [said, then] : [then, said];
  const finalized = finalizedBy(tiers.live);
  const choice = chooseSaying(live, archive, {
    isTime: passage.name === 'getBlockTime',
    isNew: finalized !== 0 && slot > finalized,
    isBelow: floors === undefined || slot < floors.highest,
    // To try again is no advice about a call that is too long for every archive.
    mayBeArchived: mayHave(tiers, slot) && (liveFirst ? second : first).kind !== 'too-large',
  });
  if (choice === 'storage-unreachable') return storageUnreachable(call.id);
  return (choice === 'live') === liveFirst ? first : second;
}

const NOTHING = new Uint8Array();
