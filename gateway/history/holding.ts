import type { Backend } from '../upstream/backend.ts';
import { firstBlockFrom } from './first-block.ts';
import type { Passage } from './passage.ts';
import { beginsAt, reachOf, type Tiers, topOf } from './tiers.ts';

/** What one backend has: every block from `floor` to `top`, both included; a live node goes on for ever. */
export type Holding = Readonly<{ backend: Backend; tier: 'live' | 'archive'; floor: number; top: number }>;

/** What is known of the backends. Those of which an end is not known are left out: they prove nothing. */
export function knownHoldings({ live, archive }: Tiers): readonly Holding[] {
  return [
    ...live.flatMap((backend): readonly Holding[] => {
      const { floor } = backend.view;
      return floor === undefined ? [] : [{ backend, tier: 'live', floor: beginsAt(floor), top: Infinity }];
    }),
    ...archive.flatMap((backend): readonly Holding[] => {
      const [floor, top] = [reachOf(backend), topOf(backend)];
      return floor === undefined || top === 0 ? [] : [{ backend, tier: 'archive', floor, top }];
    }),
  ];
}

/**
 * The same with what the others show when they are asked: their first block is the first of a list from slot 0 on, and
 * one at or after `upTo` shows that they reach that far. So a backend that never tells its first block stays of use,
 * and one that does not answer this either is not relied upon.
 */
export async function toldHoldings(passage: Passage, upTo: number): Promise<readonly Holding[]> {
  const { live, archive } = passage.tiers;
  const liveFloors = await tellFloors(passage);
  const lives = live.flatMap((backend, i): readonly Holding[] => {
    const floor = liveFloors[i];
    return floor === undefined ? [] : [{ backend, tier: 'live', floor: beginsAt(floor), top: Infinity }];
  });
  const liveFrom = lives.length === 0 ? Infinity : Math.max(...lives.map(({ floor }) => floor));
  const reached = Math.min(upTo, liveFrom - 1);
  const archives = archive.map(async (backend): Promise<readonly Holding[]> => {
    const of = { backends: [backend], localOnly: false };
    const [floor, top] = await Promise.all([
      reachOf(backend) ?? firstBlockFrom(passage, of, 0),
      topOf(backend) ||
        (reached === Infinity ? undefined : firstBlockFrom(passage, of, Math.max(0, reached))),
    ]);
    if (floor === undefined || top === undefined || floor === Infinity || top === Infinity) return [];
    return [{ backend, tier: 'archive', floor: beginsAt(floor), top }];
  });
  return [...lives, ...(await Promise.all(archives)).flat()];
}

/** The first block of every live node, asked for where it is not known; `undefined`: it does not say. */
function tellFloors(passage: Passage): Promise<readonly (number | undefined)[]> {
  return Promise.all(
    passage.tiers.live.map(async (backend) => {
      if (backend.view.floor !== undefined) return backend.view.floor;
      const floor = await firstBlockFrom(passage, { backends: [backend], localOnly: true }, 0);
      return floor === Infinity ? undefined : floor;
    }),
  );
}

/** The slot from which on every live node has every block; `undefined`: one of them does not tell. */
export async function tellFloor(passage: Passage): Promise<number | undefined> {
  const floors = await tellFloors(passage);
  const told = floors.filter((floor) => floor !== undefined);
  return told.length < floors.length ? undefined : Math.max(...told);
}
