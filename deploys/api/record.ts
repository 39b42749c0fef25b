import type { Slot } from '@solana/kit';
import { deploySlotOf, type ProgramState } from '../watch/change.ts';
import type { WatchedProgram } from '../watch/watched.ts';
import type { Latest } from '../watch/watcher.ts';
import type { ProgramFilter } from './program-filter.ts';
import type { ProgramRecord, ProgramsAnswer } from './schema.ts';

type Filter = Exclude<ProgramFilter, { kind: 'malformed' }>;

/**
 * The answer of the programs endpoint (spec 2.2): newest deploy first, programs without a deploy slot last, and
 * equals by label, then address. `timeOf` gives the Unix seconds of a slot once they are known.
 */
export function programsAnswer(
  latest: Latest,
  watched: readonly WatchedProgram[],
  filter: Filter,
  timeOf: (slot: Slot) => number | undefined,
): ProgramsAnswer {
  const rows = watched
    .filter(({ address }) => filter.kind === 'all' || filter.addresses.has(address))
    .map((program) => ({ ...program, state: latest.reading.programs.get(program.address) }))
    .sort((a, b) => newestFirst(deploySlotOf(a.state), deploySlotOf(b.state)) || byName(a, b));
  return {
    checked_at: new Date(latest.checkedAtMs).toISOString(),
    programs: rows.map(({ address, label, state }) => recordFrom(address, label, state, timeOf)),
  };
}

function recordFrom(
  program_id: string,
  label: string,
  state: ProgramState | undefined,
  timeOf: (slot: Slot) => number | undefined,
): ProgramRecord {
  const slot = deploySlotOf(state);
  const unixSeconds = slot === undefined ? undefined : timeOf(slot);
  return {
    program_id,
    label,
    status: state?.status ?? 'missing',
    upgrade_authority: state?.status === 'upgradeable' ? state.upgradeAuthority : null,
    // A reading with a slot above its context is refused, and contexts are safe integers: nothing is rounded.
    deploy_slot: slot === undefined ? null : Number(slot),
    deployed_at: unixSeconds === undefined ? null : secondsIso(unixSeconds),
  };
}

/** A block time has no milliseconds, so none are shown. */
function secondsIso(unixSeconds: number): string {
  return new Date(unixSeconds * 1_000).toISOString().replace('.000Z', 'Z');
}

function newestFirst(a: Slot | undefined, b: Slot | undefined): number {
  if (a === b) return 0;
  return (b ?? -1n) > (a ?? -1n) ? 1 : -1;
}

/** By code units: the same order everywhere, whatever the locale. */
function byName(a: WatchedProgram, b: WatchedProgram): number {
  if (a.label !== b.label) return a.label < b.label ? -1 : 1;
  return a.address < b.address ? -1 : 1;
}
