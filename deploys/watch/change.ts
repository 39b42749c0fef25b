import type { Address, Slot } from '@solana/kit';

/** The state of a program (docs/spec.md 3.1). Only a program that a loader can replace has a deploy slot. */
export type ProgramState =
  | { readonly status: 'upgradeable'; readonly deploySlot: Slot; readonly upgradeAuthority: Address }
  | { readonly status: 'frozen'; readonly deploySlot: Slot }
  | { readonly status: 'other_loader' }
  | { readonly status: 'missing' };

/** Every watched program at `finalized`. `contextSlot` is the newest slot of its calls: the next reading must not be older. */
export type Reading = Readonly<{ contextSlot: Slot; programs: ReadonlyMap<Address, ProgramState> }>;

export function deploySlotOf(state: ProgramState | undefined): Slot | undefined {
  return state !== undefined && 'deploySlot' in state ? state.deploySlot : undefined;
}

/** A deploy slot that grew while this run was watching. */
export type Deploy = Readonly<{ program: Address; previousSlot: Slot; deploySlot: Slot }>;

/** The newest deploy slot seen of each program, which a reading in which it is `missing` does not remove. */
export type DeploySlots = ReadonlyMap<Address, Slot>;

/** The deploys since `seen`. A first slot of a program is none: the event must name the slot before it (docs/spec.md 4.1). */
export function deploysBetween(seen: DeploySlots, after: Reading): Deploy[] {
  const deploys: Deploy[] = [];
  for (const [program, state] of after.programs) {
    const [previousSlot, deploySlot] = [seen.get(program), deploySlotOf(state)];
    if (previousSlot === undefined || deploySlot === undefined || deploySlot <= previousSlot) continue;
    deploys.push({ program, previousSlot, deploySlot });
  }
  return deploys;
}

export function seenAfter(seen: DeploySlots, after: Reading): DeploySlots {
  const slots = new Map(seen);
  for (const [program, state] of after.programs) {
    const deploySlot = deploySlotOf(state);
    if (deploySlot !== undefined && deploySlot > (slots.get(program) ?? -1n)) slots.set(program, deploySlot);
  }
  return slots;
}

/** The first program whose deploy slot is lower than in the previous reading. */
export function shrunkIn(before: Reading['programs'], after: Reading): Address | undefined {
  for (const [program, state] of after.programs) {
    const [previousSlot, deploySlot] = [deploySlotOf(before.get(program)), deploySlotOf(state)];
    if (previousSlot !== undefined && deploySlot !== undefined && deploySlot < previousSlot) return program;
  }
  return undefined;
}

/** Programs that may be gone from one reading to the next, whatever their share of all. */
const VANISHED_MAX = 9;

/** How many programs vanished, if more than half and at least ten: such a backend has lost accounts. `undefined`: plausible. */
export function implausibleIn(before: Reading['programs'], after: Reading) {
  const there = [...before].filter(([, { status }]) => status !== 'missing');
  const gone = there.filter(([program]) => after.programs.get(program)?.status === 'missing');
  const [present, vanished] = [there.length, gone.length];
  return vanished > VANISHED_MAX && 2 * vanished > present ? { vanished, present } : undefined;
}
