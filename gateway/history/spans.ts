import { type Profile, PROFILES } from '../../shared/config/profiles.ts';
import type { Backend } from '../upstream/backend.ts';
import { reachOf, type Tiers, topOf } from './tiers.ts';

/** Archives of one profile that hold the same: one answers like the other. */
export type Span = Readonly<{
  backends: readonly Backend[];
  profile: Profile;
  /** The first slot that they have; `undefined`: not known. */
  floor: number | undefined;
  /** The newest slot that all of them have; 0: not known. */
  top: number;
}>;

/** The archives by what they have, those that begin last first: several may hold a part of history each. */
export function spansOf({ archive }: Tiers): readonly Span[] {
  const alike = Map.groupBy(archive, (backend) => {
    const floor = reachOf(backend);
    // Nobody knows whether two of them are alike when nobody knows what they have.
    return floor === undefined || topOf(backend) === 0 ? backend : `${backend.config.profile} ${floor}`;
  });
  const spans = [...alike.values()].flatMap((backends): readonly Span[] => {
    const [first] = backends;
    if (first === undefined) return [];
    const top = Math.min(...backends.map(topOf));
    return [{ backends, profile: PROFILES[first.config.profile], floor: reachOf(first), top }];
  });
  return spans.toSorted((a, b) => (b.floor ?? -1) - (a.floor ?? -1));
}

/** Whether they may have the slot; they do have it when they are known (`isKnown`). */
export function mayHold({ floor, top }: Span, slot: number): boolean {
  return (floor ?? 0) <= slot && (top === 0 || slot <= top);
}

/** Whether it is known from where to where they go. */
export function isKnown({ floor, top }: Span): boolean {
  return floor !== undefined && top !== 0;
}
