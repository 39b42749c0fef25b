import type { Address, Slot } from '@solana/kit';

/** What one look at a program says (docs/spec.md 3.1). Only a program that a loader can replace has a deploy slot. */
export type ProgramState =
  | { readonly status: 'upgradeable'; readonly deploySlot: Slot; readonly upgradeAuthority: Address }
  | { readonly status: 'frozen'; readonly deploySlot: Slot }
  | { readonly status: 'other_loader' }
  | { readonly status: 'missing' };

/**
 * One look at every watched program, at `finalized`. `contextSlot` is the newest slot that any of its calls was
 * answered at: the next reading must not be older.
 */
export type Reading = Readonly<{ contextSlot: Slot; programs: ReadonlyMap<Address, ProgramState> }>;

/** The program's deploy slot, when it has one. */
export function deploySlotOf(state: ProgramState | undefined): Slot | undefined {
  switch (state?.status) {
    case 'upgradeable':
    case 'frozen':
      return state.deploySlot;
    default:
      return undefined;
  }
}

/** A deploy slot that grew while this run was watching. */
export type Deploy = Readonly<{ program: Address; previousSlot: Slot; deploySlot: Slot }>;

/**
 * The newest deploy slot seen of each program. It outlives a reading in which a program is `missing`, so that a
 * program that was closed and came back still has the slot it had before.
 */
export type DeploySlots = ReadonlyMap<Address, Slot>;

/**
 * The deploys between what was seen before and a new reading. A program's first slot is no deploy: an event must
 * carry the slot before it. So the first reading after a start yields none (docs/spec.md 4.1).
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

/** Programs that may be gone from one reading to the next, whatever their share of all. */
const VANISHED_MAX = 9;

/** How many programs are `missing` in `after` that were there in `before`, and how many were there. */
type Vanished = Readonly<{ vanished: number; present: number }>;

/**
 * Tells of a reading in which more than half of the programs, and at least ten, are gone at once: rather than closed
 * in one minute they are unknown to a backend that has lost its accounts. `undefined` is a reading to believe.
 */
export function implausibleIn(before: Reading['programs'], after: Reading): Vanished | undefined {
  let [present, vanished] = [0, 0];
  for (const [program, { status }] of before) {
    if (status === 'missing') continue;
    present++;
    if (after.programs.get(program)?.status === 'missing') vanished++;
  }
  return vanished > VANISHED_MAX && 2 * vanished > present ? { vanished, present } : undefined;
}
