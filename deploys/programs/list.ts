import type { Store } from '../../shared/store/open.ts';
import type { ProgramState } from '../watch/program-state.ts';
import type { WatchedProgram } from '../watch/watched.ts';

/** A watched program as the last reading saw it. Instants are Unix milliseconds. */
export type ProgramShown = Readonly<{
  programId: string;
  label: string;
  /** `undefined` while no reading has told. */
  status: ProgramState['status'] | undefined;
  deploySlot: number | undefined;
  deployedAtMs: number | undefined;
  /** How long ago it was deployed, in milliseconds; not known while the time of its block is not. */
  ageMs: number | undefined;
  authority: string | undefined;
}>;

/** `search` is a part of a label or of an address, in either case. */
export type ProgramWish = Readonly<{ search?: string; status?: ProgramState['status'] }>;

type Row = Readonly<{
  programId: string;
  status: ProgramState['status'];
  deploySlot: number | null;
  authority: string | null;
  unixSeconds: number | null;
}>;

/** Gives the programs of the list that fit a wish, in the list's order. */
export function createProgramList(
  store: Store,
  watched: readonly WatchedProgram[],
): (wish: ProgramWish, nowMs: number) => readonly ProgramShown[] {
  const read = store.prepare<Row, []>(`
    SELECT program_id AS programId, status, deploy_slot AS deploySlot, upgrade_authority AS authority,
      unix_seconds AS unixSeconds
    FROM programs LEFT JOIN block_times ON slot = deploy_slot`);

  return function programs({ search = '', status }, nowMs) {
    const rows = new Map(read.all().map((row) => [row.programId, row]));
    const part = search.toLowerCase();
    return watched
      .filter(({ address, label }) => `${label}\n${address}`.toLowerCase().includes(part))
      .map(({ address, label }) => shown(address, label, rows.get(address), nowMs))
      .filter((program) => status === undefined || program.status === status);
  };
}

function shown(programId: string, label: string, row: Row | undefined, nowMs: number): ProgramShown {
  const seconds = row?.unixSeconds ?? undefined;
  const deployedAtMs = seconds === undefined ? undefined : seconds * 1_000;
  return {
    programId,
    label,
    status: row?.status,
    deploySlot: row?.deploySlot ?? undefined,
    deployedAtMs,
    ageMs: deployedAtMs === undefined ? undefined : Math.max(0, nowMs - deployedAtMs),
    authority: row?.authority ?? undefined,
  };
}
