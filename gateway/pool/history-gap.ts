import type { Backend } from '../backend/backend.ts';

/** Slots between what the archives end with and what the live nodes begin with, both included. */
export type Gap = Readonly<{ from: number; to: number }>;

/**
 * The slots that some call will not find anywhere; `undefined` while there are none or not enough is known. Archives of whole
 * epochs end days before the newest slot: unless every live node reaches back to there, calls for the slots between
 * find nothing.
 */
export function historyGap(backends: readonly Backend[]): Gap | undefined {
  const holders = backends.filter(({ config }) => config.lanes.includes('archive'));
  const floors = holders.flatMap(({ config, view }) =>
    config.lanes.includes('state') ? (view.floor ?? []) : [],
  );
  const tops = holders.flatMap(({ config, view: { tip } }) =>
    config.lanes.includes('state') ? [] : [Math.max(tip.processed, tip.confirmed, tip.finalized)],
  );
  // Any live node may be the one that is asked.
  const [floor, top] = [Math.max(...floors), Math.max(...tops)];
  if (floors.length === 0 || tops.length === 0 || top === 0 || top + 1 >= floor) return undefined;
  return { from: top + 1, to: floor - 1 };
}
