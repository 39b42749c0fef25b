import type { Address, Slot } from '@solana/kit';

/** What one look at a program says (spec 3.1). Only a program that a loader can replace has a deploy slot. */
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
