import type { Address, Slot } from '@solana/kit';
import { deploySlotOf, type Reading } from './program-state.ts';

/** A deploy slot that grew while this run was watching. */
export type Deploy = Readonly<{ program: Address; previousSlot: Slot; deploySlot: Slot }>;

/**
 * The newest deploy slot seen of each program. It outlives a reading in which a program is `missing`, so that a
 * program that was closed and came back still has the slot it had before.
 */
export type DeploySlots = ReadonlyMap<Address, Slot>;

/**
 * The deploys between what was seen before and a new reading. A program's first slot is no deploy: an event must
 * carry the slot before it. So the first reading after a start yields none (spec 6.2.3).
 */
export function deploysBetween(seen: DeploySlots, after: Reading): Deploy[] {
  const deploys: Deploy[] = [];
  for (const [program, state] of after.programs) {
    const [previousSlot, deploySlot] = [seen.get(program), deploySlotOf(state)];
    if (previousSlot === undefined || deploySlot === undefined || deploySlot <= previousSlot) continue;
    deploys.push({ program, previousSlot, deploySlot });
  }
  return deploys;
}

/** What has been seen once `after` was read too. */
export function seenAfter(seen: DeploySlots, after: Reading): DeploySlots {
  const slots = new Map(seen);
  for (const [program, state] of after.programs) {
    const deploySlot = deploySlotOf(state);
    if (deploySlot !== undefined && deploySlot > (slots.get(program) ?? -1n)) slots.set(program, deploySlot);
  }
  return slots;
}

/** The first program whose deploy slot is lower than in the reading before. */
export function shrunkIn(before: Reading['programs'], after: Reading): Address | undefined {
  for (const [program, state] of after.programs) {
    const [previousSlot, deploySlot] = [deploySlotOf(before.get(program)), deploySlotOf(state)];
    if (previousSlot !== undefined && deploySlot !== undefined && deploySlot < previousSlot) return program;
  }
  return undefined;
}
